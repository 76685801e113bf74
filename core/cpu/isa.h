#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The instruction sets of the CPU backend and the selection of kernels.
///
/// A file NAME.simd.cpp is compiled once per instruction set that it supports (see
/// cmake/longhand.cmake), with LONGHAND_ISA as the name of the set. Everything it defines is in
/// namespace longhand::cpu::LONGHAND_ISA, so that the linker cannot pick an inline function
/// compiled with wide instructions for a narrow machine. For the same reason it includes no header
/// with inline code outside that namespace, except <cstdint> and the like. It exports one table of
/// function pointers per family:
///
///   // norm/kernels.h, plain
///   struct NormKernels { void (*forward)(const Forward& rows, ...); };
///   // norm/norm.simd.cpp, once per instruction set
///   template <> const NormKernels& longhand::cpu::kernels<NormKernels, Isa::LONGHAND_ISA>() {...}
///   // norm/norm.cpp, plain
///   const NormKernels& k = kernels_for<NormKernels>(isa);
///
/// A small family has all three in one file, NAME.op.cpp: the table; with LONGHAND_ISA the kernels;
/// and without it, compiled once more, the code that calls them.
namespace longhand::cpu {

/// Weakest first: neon is of arm64, those after it are of x86-64. avx512bf16 and amx differ from
/// avx512 in products of matrices and of attention, and in bf16 conversions. portable rounds every
/// multiplication and addition and has four lanes on every processor, so its results have the same
/// bits on all of them.
enum class Isa { portable, neon, avx2, avx512, avx512bf16, amx };

std::string_view name_of(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);

/// True if this build has the kernels, this processor has the instructions, and the operating
/// system has granted their state (AMX needs a request). Otherwise `reason` says why not.
bool supports(Isa isa, std::string_view* reason = nullptr);
/// The sets of this kind of processor, weakest first, whether supported or not.
std::span<const Isa> isas_of_this_processor();
std::vector<Isa> supported_isas();

/// The strongest supported set, or the one named by LONGHAND_CPU. Throws an Error if that one is
/// unknown or not supported.
Isa choose_isa();

template <class Table, Isa isa>
const Table& kernels();  // specialized in the family's *.simd.cpp

/// Few tables gain from avx512bf16 and amx. These declare `static constexpr Isa strongest =
/// Isa::amx;`, and cmake/longhand.cmake lists their files.
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

/// The strongest set in this build; cmake/longhand.cmake may shorten the list.
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
