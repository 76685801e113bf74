#include "core/contract/matmul.h"
#include "core/cpu/gemm/micro.h"
#include "core/cpu/gemm/pack.h"
#include "core/cpu/isa.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

/// Converts elements of an operand to units of two bf16 values that are adjacent along k. The first
/// value is in the lower half of the 32-bit unit.
struct PairedUnits {
  static constexpr int per_unit = 2;

  [[gnu::always_inline]] static FloatLanes along(const bf16* from, std::int64_t n) {
    if (n >= 2 * lanes) return load_raw<FloatLanes>(from);
    return reinterpret_cast<FloatLanes>(
        _mm512_maskz_loadu_epi16(static_cast<__mmask32>((std::uint64_t{1} << n) - 1u), from));
  }
  [[gnu::always_inline]] static FloatLanes along(const float* from, std::int64_t n) {
    const int first = n >= lanes ? lanes : static_cast<int>(n);
    const int second = n >= 2 * lanes ? lanes : n > lanes ? static_cast<int>(n - lanes) : 0;
    const Vec low = first == lanes ? load(from) : load_first(from, first);
    const Vec high = second == lanes ? load(from + lanes)
                     : second > 0    ? load_first(from + lanes, second)
                                     : Vec(0.0);
    return reinterpret_cast<FloatLanes>(_mm512_cvtne2ps_pbh(high.v, low.v));
  }

  [[gnu::always_inline]] static FloatLanes across(const bf16* from, const bf16* next, int n) {
    const WordLanes low = words(from, n);
    const WordLanes high = next ? words(next, n) << 16 : WordLanes{};
    return reinterpret_cast<FloatLanes>(low | high);
  }
  [[gnu::always_inline]] static FloatLanes across(const float* from, const float* next, int n) {
    const Vec low = PlainUnits::across(from, from, n);
    const Vec high = next ? Vec(PlainUnits::across(next, next, n)) : Vec(0.0);
    const WordLanes a = rounded(low), b = rounded(high);
    return reinterpret_cast<FloatLanes>(a | b << 16);
  }

 private:
  static WordLanes words(const bf16* from, int n) {
    const HalfLanes half = n >= lanes ? load_raw<HalfLanes>(from)
                                      : reinterpret_cast<HalfLanes>(_mm256_maskz_loadu_epi16(
                                            static_cast<__mmask16>((1u << n) - 1u), from));
    return __builtin_convertvector(half, WordLanes);
  }
  // vcvtneps2bf16 treats subnormals as 0. This has no effect on the result, because vdpbf16ps
  // treats them as 0 too.
  static WordLanes rounded(Vec x) {
    return reinterpret_cast<WordLanes>(
        _mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x.v))));
  }
};

/// The format of packed operands whose units are two bf16 values.
const PanelFormat paired_format{.mr = mr,
                                .nr = nr,
                                .k_per_unit = 2,
                                .granule = 1,
                                .unit_bytes = 4,
                                .block_units = 512,
                                // 8 tiles of 14 rows
                                .block_rows = 112,
                                .most_task_cols = 2048,
                                .in_place_f32 = false,
                                .in_place_bf16_rows = true,
                                .pack_a = pack_panels<PairedUnits, mr>,
                                .pack_b = pack_panels<PairedUnits, nr>,
                                .multiply = multiply<PairStep>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const GemmKernels& kernels<GemmKernels, Isa::LONGHAND_ISA>() {
  static const GemmKernels table = [] {
    GemmKernels t = kernels<GemmKernels, Isa::avx512>();
    constexpr auto bf16_math = static_cast<std::size_t>(Math::bf16);
    t.format[bf16_math] = t.small[bf16_math] = &LONGHAND_ISA::paired_format;
    return t;
  }();
  return table;
}

}  // namespace longhand::cpu
