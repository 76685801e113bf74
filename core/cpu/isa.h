#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The instruction sets of the CPU backend and how kernels are chosen among them.
///
/// A file NAME.simd.cpp is compiled once per instruction set it serves (cmake/longhand.cmake says
/// which), with LONGHAND_ISA naming it. All it
/// defines lies in namespace longhand::cpu::LONGHAND_ISA, so that no inline function compiled with
/// wide instructions can be picked by the linker for a narrow machine; for the same reason it
/// includes no header with inline code outside that namespace beyond <cstdint> and its like. What
/// it offers is one table of function pointers per family:
///
///   // norm/kernels.h, plain
///   struct NormKernels { void (*forward)(const Forward& rows, ...); };
///   // norm/norm.simd.cpp, once per instruction set
///   template <> const NormKernels& longhand::cpu::kernels<NormKernels, Isa::LONGHAND_ISA>() {...}
///   // norm/norm.cpp, plain
///   const NormKernels& k = kernels_for<NormKernels>(isa);
///
/// A small family has the three in one file, NAME.op.cpp: the table, then with LONGHAND_ISA the
/// kernels, and without it, compiled once more, what calls them.
namespace longhand::cpu {

/// Weakest first: neon is of arm64, those after it are of x86-64. avx512bf16 and amx differ from
/// avx512 in the products of matrices and of attention, and in bf16 conversions. portable rounds
/// every multiplication and addition and takes four lanes on every processor, so that its results
/// are the same bits on all of them.
enum class Isa { portable, neon, avx2, avx512, avx512bf16, amx };

std::string_view name_of(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);

/// True when this build has the kernels, this processor the instructions and the operating system
/// has granted their state (AMX needs a request). The reason says why not; empty when true.
bool supports(Isa isa, std::string_view* reason = nullptr);
/// The sets of this kind of processor, weakest first, supported or not.
std::span<const Isa> isas_of_this_processor();
std::vector<Isa> supported_isas();

/// The strongest supported set, or the one that LONGHAND_CPU names; an Error if that one is unknown
/// or not supported here.
Isa choose_isa();

template <class Table, Isa isa>
const Table& kernels();  // specialised in the family's *.simd.cpp

/// Few tables have something to gain from avx512bf16 and amx: those say so, by
/// `static constexpr Isa strongest = Isa::amx;`, and cmake/longhand.cmake names their files.
template <class Table>
constexpr Isa strongest() {
  if constexpr (requires { Table::strongest; }) return Table::strongest;
  return Isa::avx512;
}

#if defined(__aarch64__)
constexpr bool is_arm64 = true;
#else
constexpr bool is_arm64 = false;
#endif

/// The strongest set there are kernels of in this build; cmake/longhand.cmake may cut the list.
#if defined(LONGHAND_STRONGEST_ISA)
constexpr Isa strongest_built = Isa::LONGHAND_STRONGEST_ISA;
#elif defined(__x86_64__)
constexpr Isa strongest_built = Isa::amx;
#elif defined(__aarch64__)
constexpr Isa strongest_built = Isa::neon;
#else
constexpr Isa strongest_built = Isa::portable;
#endif

template <class Table>
const Table& kernels_for(Isa isa) {
  constexpr auto built = [](Isa i) {
    return strongest_built >= i && strongest<Table>() >= i && (i == Isa::neon) == is_arm64;
  };
  if constexpr (built(Isa::amx)) {
    if (isa >= Isa::amx) return kernels<Table, Isa::amx>();
  }
  if constexpr (built(Isa::avx512bf16)) {
    if (isa >= Isa::avx512bf16) return kernels<Table, Isa::avx512bf16>();
  }
  if constexpr (built(Isa::avx512)) {
    if (isa >= Isa::avx512) return kernels<Table, Isa::avx512>();
  }
  if constexpr (built(Isa::avx2)) {
    if (isa >= Isa::avx2) return kernels<Table, Isa::avx2>();
  }
  if constexpr (built(Isa::neon)) {
    if (isa >= Isa::neon) return kernels<Table, Isa::neon>();
  }
  return kernels<Table, Isa::portable>();
}

}  // namespace longhand::cpu
