#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// The instruction sets of the CPU backend, and the selection of kernels at run time.
///
/// A file NAME.simd.cpp is compiled once per instruction set that it supports (see
/// cmake/longhand.cmake). LONGHAND_ISA is then the name of the set, and all definitions of the file
/// are in the namespace longhand::cpu::LONGHAND_ISA. Without this namespace, an inline function
/// would have the same name in all compilations, and the linker would keep only one of them. If
/// that one contains wide instructions, it would crash on a processor that lacks them. For the same
/// reason, the file includes no header with inline code outside that namespace, except <cstdint>
/// and similar headers. The file exports one table of function pointers for each family of related
/// operations:
///
///   // norm/kernels.h, compiled normally
///   struct NormKernels { void (*forward)(const Forward& rows, ...); };
///   // norm/norm.simd.cpp, compiled once per instruction set
///   template <> const NormKernels& longhand::cpu::kernels<NormKernels, Isa::LONGHAND_ISA>() {...}
///   // norm/norm.cpp, compiled normally
///   const NormKernels& k = kernels_for<NormKernels>(isa);
///
/// A small family has all three parts in one file, NAME.op.cpp. If LONGHAND_ISA is defined, this
/// file defines the kernels. The file is compiled once more without LONGHAND_ISA, which gives the
/// code that calls the kernels.
namespace longhand::cpu {

/// The instruction sets from weakest to strongest. neon is for arm64, simd128 for WebAssembly with
/// relaxed SIMD, and the sets after simd128 are for x86-64. avx512bf16 and amx differ from avx512
/// in matrix products, in the products of attention and in bf16 conversions. The sets `fused` and
/// `portable` have four lanes and run on every processor. The set `portable` rounds every
/// multiplication and addition separately. All other sets use fused multiply-add. The set `fused`
/// is slow, because it emulates fused multiply-add with other instructions. It is used in place of
/// `portable` in the math mode Math::portable.
enum class Isa { fused, portable, neon, simd128, avx2, avx512, avx512bf16, amx };

std::string_view name_of(Isa isa);
std::optional<Isa> isa_from_name(std::string_view name);

/// True if this build has the kernels, this processor has the instructions, and the operating
/// system permits them (AMX must be requested). If the result is false, `reason` states why.
bool supports(Isa isa, std::string_view* reason = nullptr);
/// All instruction sets of this processor's architecture except fused, supported or not, from
/// weakest to strongest.
std::span<const Isa> isas_of_this_processor();
std::vector<Isa> supported_isas();

#if defined(__wasm__)
/// True if the relaxed multiply-add of the WebAssembly engine rounds only once. The build makes one
/// WebAssembly module with relaxed SIMD, in which this function tests the instruction, and one
/// without, in which it returns false. Engines without relaxed SIMD refuse the first module.
bool relaxed_is_fused();
#endif

/// True if this build has kernels for tensors of bf16 and for Math::bf16. The WebAssembly module
/// has none, which reduces the time to load it.
#if defined(__wasm__)
inline constexpr bool has_bf16_kernels = false;
#else
inline constexpr bool has_bf16_kernels = true;
#endif

/// The instruction set that the environment variable LONGHAND_CPU names, by default the strongest
/// supported set. Throws an Error if the named set is unknown or not supported.
Isa choose_isa();

template <class Table, Isa isa>
const Table& kernels();  // specialized in the *.simd.cpp or *.op.cpp that defines the kernels

/// The strongest instruction set for which a table has its own kernels. The default is avx512.
/// Tables with kernels for avx512bf16 or amx declare `static constexpr Isa strongest = Isa::amx;`,
/// and cmake/longhand.cmake lists their files.
template <class Table>
constexpr Isa strongest() {
  if constexpr (requires { Table::strongest; }) return Table::strongest;
  return Isa::avx512;
}

/// True if the processor architecture of this build has the instruction set.
constexpr bool is_of_this_architecture(Isa isa) {
#if defined(__aarch64__)
  return isa <= Isa::neon;
#elif defined(__wasm__)
  return isa <= Isa::portable || isa == Isa::simd128;
#else
  return isa != Isa::neon && isa != Isa::simd128;
#endif
}

/// The weakest and the strongest instruction set in this build. By default, the build has all sets
/// of its processor architecture. The CMake options LONGHAND_WEAKEST_ISA and LONGHAND_STRONGEST_ISA
/// exclude weaker or stronger sets.
#if defined(LONGHAND_WEAKEST_ISA)
constexpr Isa weakest_built = Isa::LONGHAND_WEAKEST_ISA;
#else
constexpr Isa weakest_built = Isa::fused;
#endif
#if defined(LONGHAND_STRONGEST_ISA)
constexpr Isa strongest_built = Isa::LONGHAND_STRONGEST_ISA;
#elif defined(__x86_64__)
constexpr Isa strongest_built = Isa::amx;
#elif defined(__aarch64__)
constexpr Isa strongest_built = Isa::neon;
#elif defined(__wasm__)
constexpr Isa strongest_built = Isa::simd128;
#else
constexpr Isa strongest_built = Isa::portable;
#endif

template <class Table>
const Table& kernels_for(Isa isa) {
  constexpr auto built = [](Isa i) {
    return weakest_built <= i && strongest_built >= i && strongest<Table>() >= i &&
           is_of_this_architecture(i);
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
  if constexpr (built(Isa::simd128)) {
    if (isa >= Isa::simd128) return kernels<Table, Isa::simd128>();
  }
  if constexpr (built(Isa::neon)) {
    if (isa >= Isa::neon) return kernels<Table, Isa::neon>();
  }
  if constexpr (built(Isa::portable)) {
    if (isa >= Isa::portable) return kernels<Table, Isa::portable>();
  }
  return kernels<Table, weakest_built>();  // supports() is false for weaker sets
}

}  // namespace longhand::cpu
