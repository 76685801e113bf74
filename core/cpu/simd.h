#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__wasm__)
#include <wasm_simd128.h>
#endif

/// A vector of floats that has the width of the instruction set. It is written with the compiler's
/// vector extensions. Only code that is compiled once per instruction set includes this header.
/// LONGHAND_ISA is then defined and is the name of the namespace (see core/cpu/isa.h).
///
/// Comparisons return a Mask, and select(mask, yes, no) chooses a value for each lane. A sum or
/// maximum over a vector combines the two halves of the vector, then the two halves of the result,
/// and so on, so the order of operations is fixed. A sum of more entries than a vector has uses
/// Sums, whose order does not depend on the instruction set. A partial load or store of n lanes
/// accesses no memory beyond these lanes.
namespace longhand::cpu::LONGHAND_ISA {

#if defined(LONGHAND_ISA_IS_PORTABLE) || defined(LONGHAND_ISA_IS_FUSED) || \
    defined(LONGHAND_ISA_IS_NEON) || defined(LONGHAND_ISA_IS_SIMD128)
inline constexpr int lanes = 4;
#define LONGHAND_SIMD_FOUR_LANES  // removed by #undef at the end of this file
#elif defined(LONGHAND_ISA_IS_AVX2)
inline constexpr int lanes = 8;
#else
inline constexpr int lanes = 16;
#define LONGHAND_SIMD_AVX512  // removed by #undef at the end of this file
#endif

/// Number of vector registers of the instruction set.
#if defined(LONGHAND_ISA_IS_NEON) || defined(LONGHAND_SIMD_AVX512)
inline constexpr int registers = 32;
#else
inline constexpr int registers = 16;
#endif

/// True if fma() rounds only once.
#if defined(LONGHAND_ISA_IS_PORTABLE)
inline constexpr bool fused_multiply_add = false;
#else
inline constexpr bool fused_multiply_add = true;
#endif

using FloatLanes [[gnu::vector_size(lanes * 4)]] = float;
using IntLanes [[gnu::vector_size(lanes * 4)]] = std::int32_t;
using WordLanes [[gnu::vector_size(lanes * 4)]] = std::uint32_t;
using HalfLanes [[gnu::vector_size(lanes * 2)]] = std::uint16_t;

/// The result of a comparison. In each lane, either all bits are set or no bit is set.
struct Mask {
  IntLanes v;
  friend Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
  friend Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
  friend Mask operator~(Mask a) { return {~a.v}; }
};

/// A vector of std::int32_t. Arithmetic wraps around.
struct IntVec {
  IntLanes v;
  IntVec() = default;
  IntVec(IntLanes lanes_of) : v(lanes_of) {}
  explicit IntVec(std::int32_t all) : v(all - IntLanes{}) {}

  friend IntVec operator+(IntVec a, IntVec b) { return wrap(words(a) + words(b)); }
  friend IntVec operator-(IntVec a, IntVec b) { return wrap(words(a) - words(b)); }
  friend IntVec operator&(IntVec a, IntVec b) { return a.v & b.v; }
  friend IntVec operator|(IntVec a, IntVec b) { return a.v | b.v; }
  friend IntVec operator^(IntVec a, IntVec b) { return a.v ^ b.v; }
  friend IntVec operator<<(IntVec a, int bits) { return wrap(words(a) << bits); }
  friend IntVec operator>>(IntVec a, int bits) { return a.v >> bits; }  // arithmetic shift
  friend Mask operator==(IntVec a, IntVec b) { return {a.v == b.v}; }
  friend Mask operator<(IntVec a, IntVec b) { return {a.v < b.v}; }
  friend Mask operator>(IntVec a, IntVec b) { return {a.v > b.v}; }

 private:
  static WordLanes words(IntVec a) { return reinterpret_cast<WordLanes>(a.v); }
  static IntVec wrap(WordLanes a) { return reinterpret_cast<IntLanes>(a); }
};

/// A vector of floats.
struct Vec {
  FloatLanes v;
  Vec() = default;
  Vec(FloatLanes lanes_of) : v(lanes_of) {}
  template <class Number>
  requires std::is_arithmetic_v<Number>
  /// Sets all lanes to the same number. +0 is subtracted and not added, because -0 + 0 is +0.
  explicit Vec(Number all) : v(static_cast<float>(all) - FloatLanes{}) {}

  friend Vec operator+(Vec a, Vec b) { return a.v + b.v; }
  friend Vec operator-(Vec a, Vec b) { return a.v - b.v; }
  friend Vec operator*(Vec a, Vec b) { return a.v * b.v; }
  friend Vec operator/(Vec a, Vec b) { return a.v / b.v; }
  friend Vec operator-(Vec a) { return -a.v; }
  Vec& operator+=(Vec b) { return *this = *this + b; }
  Vec& operator*=(Vec b) { return *this = *this * b; }
  friend Mask operator<(Vec a, Vec b) { return {a.v < b.v}; }
  friend Mask operator>(Vec a, Vec b) { return {a.v > b.v}; }
  friend Mask operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
  friend Mask operator>=(Vec a, Vec b) { return {a.v >= b.v}; }
  friend Mask operator==(Vec a, Vec b) { return {a.v == b.v}; }
  friend Mask operator!=(Vec a, Vec b) { return {a.v != b.v}; }
};

inline Vec select(Mask mask, Vec yes, Vec no) { return mask.v ? yes.v : no.v; }
inline IntVec select(Mask mask, IntVec yes, IntVec no) { return mask.v ? yes.v : no.v; }

/// Reinterprets the bits of each float as an integer. from_bits() is the inverse.
inline IntVec bits(Vec a) { return reinterpret_cast<IntLanes>(a.v); }
inline Vec from_bits(IntVec a) { return reinterpret_cast<FloatLanes>(a.v); }

inline Vec to_float(IntVec a) { return __builtin_convertvector(a.v, FloatLanes); }

#if defined(LONGHAND_ISA_IS_FUSED)
/// Returns a * b + c, rounded once, for processors without a fused multiply-add instruction. The
/// product of two floats is exact in double, but adding c may round. The rounded sum is then
/// changed by rounding to odd (Boldo and Melquiond, 2008). If its last bit is 1, it is kept. If its
/// last bit is 0, it is replaced by the next double in the direction of the exact sum. The last bit
/// of this double is 1. A double with a last bit of 1 is never halfway between two floats. Rounding
/// it to f32 therefore gives the float nearest to the exact sum.
[[gnu::always_inline]] inline Vec fma_without_instruction(Vec a, Vec b, Vec c) {
  using Doubles [[gnu::vector_size(lanes * 8)]] = double;
  using Longs [[gnu::vector_size(lanes * 8)]] = std::int64_t;
  const Doubles product =
      __builtin_convertvector(a.v, Doubles) * __builtin_convertvector(b.v, Doubles);
  const Doubles addend = __builtin_convertvector(c.v, Doubles), sum = product + addend;
  const Doubles added = sum - product;
  // The rounding error of `sum`: product + addend equals sum + error exactly.
  const Doubles error = (product - (sum - added)) + (addend - added);
  const Longs bits = reinterpret_cast<Longs>(sum);
  const Longs below = error < 0.0, inexact = below | (error > 0.0);  // `inexact` is 0 for NaN
  const Longs even = (bits & 1) - 1;  // all bits are set if the last bit of `sum` is 0
  // 1 if the exact sum has a larger magnitude than `sum`, otherwise -1.
  const Longs step = (below ^ (sum < 0.0)) | 1;
  return __builtin_convertvector(reinterpret_cast<Doubles>(bits + (step & inexact & even)),
                                 FloatLanes);
}
#endif

/// a * b + c, rounded once if fused_multiply_add is true.
inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<FloatLanes>(_mm512_fmadd_ps(a.v, b.v, c.v));
#elif defined(LONGHAND_ISA_IS_AVX2)
  return reinterpret_cast<FloatLanes>(_mm256_fmadd_ps(a.v, b.v, c.v));
#elif defined(LONGHAND_ISA_IS_NEON)
  return reinterpret_cast<FloatLanes>(vfmaq_f32(reinterpret_cast<float32x4_t>(c.v),
                                                reinterpret_cast<float32x4_t>(a.v),
                                                reinterpret_cast<float32x4_t>(b.v)));
#elif defined(LONGHAND_ISA_IS_SIMD128)
  return reinterpret_cast<FloatLanes>(wasm_f32x4_relaxed_madd(
      reinterpret_cast<v128_t>(a.v), reinterpret_cast<v128_t>(b.v), reinterpret_cast<v128_t>(c.v)));
#elif defined(LONGHAND_ISA_IS_FUSED)
  return fma_without_instruction(a, b, c);
#else
  return a.v * b.v + c.v;
#endif
}

/// max returns a > b ? a : b, and min returns a < b ? a : b. If a or b is NaN, the result is
/// therefore b.
inline Vec max(Vec a, Vec b) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<FloatLanes>(_mm512_max_ps(a.v, b.v));
#elif defined(LONGHAND_ISA_IS_AVX2)
  return reinterpret_cast<FloatLanes>(_mm256_max_ps(a.v, b.v));
#elif defined(__x86_64__)
  return reinterpret_cast<FloatLanes>(_mm_max_ps(a.v, b.v));
#elif defined(__wasm__)
  return reinterpret_cast<FloatLanes>(
      wasm_f32x4_pmax(reinterpret_cast<v128_t>(b.v), reinterpret_cast<v128_t>(a.v)));
#else
  return select(a > b, a, b);
#endif
}
inline Vec min(Vec a, Vec b) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<FloatLanes>(_mm512_min_ps(a.v, b.v));
#elif defined(LONGHAND_ISA_IS_AVX2)
  return reinterpret_cast<FloatLanes>(_mm256_min_ps(a.v, b.v));
#elif defined(__x86_64__)
  return reinterpret_cast<FloatLanes>(_mm_min_ps(a.v, b.v));
#elif defined(__wasm__)
  return reinterpret_cast<FloatLanes>(
      wasm_f32x4_pmin(reinterpret_cast<v128_t>(b.v), reinterpret_cast<v128_t>(a.v)));
#else
  return select(a < b, a, b);
#endif
}

inline Vec sqrt(Vec a) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<FloatLanes>(_mm512_sqrt_ps(a.v));
#elif defined(LONGHAND_ISA_IS_AVX2)
  return reinterpret_cast<FloatLanes>(_mm256_sqrt_ps(a.v));
#elif defined(__x86_64__)
  return reinterpret_cast<FloatLanes>(_mm_sqrt_ps(a.v));
#elif defined(__aarch64__)
  return reinterpret_cast<FloatLanes>(vsqrtq_f32(reinterpret_cast<float32x4_t>(a.v)));
#elif defined(__wasm__)
  return reinterpret_cast<FloatLanes>(wasm_f32x4_sqrt(reinterpret_cast<v128_t>(a.v)));
#else
  for (int i = 0; i < lanes; ++i) a.v[i] = __builtin_sqrtf(a.v[i]);
  return a;
#endif
}

inline Vec abs(Vec a) { return from_bits(bits(a) & IntVec(0x7fffffff)); }

/// The magnitude of a with the sign of b.
inline Vec copysign(Vec a, Vec b) {
  return from_bits((bits(a) & IntVec(0x7fffffff)) |
                   (bits(b) & IntVec(static_cast<std::int32_t>(0x80000000u))));
}

/// The vector 0, 1, 2, ...
inline IntVec lane_indices() {
  IntLanes v{};
  for (int i = 0; i < lanes; ++i) v[i] = i;
  return v;
}
/// A mask that is true in the first n lanes only.
inline Mask first(int n) { return lane_indices() < IntVec(n); }

// Memory access. Addresses need no alignment unless stated otherwise.

template <class Lanes>
inline Lanes load_raw(const void* from) {
  Lanes v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline Vec load(const float* from) { return load_raw<FloatLanes>(from); }
inline void store(float* to, Vec a) { __builtin_memcpy(to, &a.v, sizeof a.v); }
inline IntVec load(const std::int32_t* from) { return load_raw<IntLanes>(from); }
inline void store(std::int32_t* to, IntVec a) { __builtin_memcpy(to, &a.v, sizeof a.v); }

/// Converts bf16 to f32. A bf16 number is the upper half of an f32 number.
inline Vec widen(HalfLanes a) {
#if defined(LONGHAND_SIMD_AVX512)
  const auto words =
      reinterpret_cast<WordLanes>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(a)));
#elif defined(LONGHAND_ISA_IS_AVX2)
  const auto words =
      reinterpret_cast<WordLanes>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(a)));
#else
  const WordLanes words = __builtin_convertvector(a, WordLanes);
#endif
  return from_bits(reinterpret_cast<IntLanes>(words << 16));
}
/// Converts f32 to bf16. Rounds to nearest, ties to even. NaN remains NaN. The instruction
/// vcvtneps2bf16 is not used, because it replaces subnormals by 0.
inline HalfLanes narrow(Vec a) {
  const WordLanes word = reinterpret_cast<WordLanes>(a.v);
  const WordLanes rounded = (word + 0x7fffu + ((word >> 16) & 1u)) >> 16;
  const WordLanes quiet = (word >> 16) | 0x40u;
  return __builtin_convertvector(a.v == a.v ? rounded : quiet, HalfLanes);
}
inline Vec load(const bf16* from) { return widen(load_raw<HalfLanes>(from)); }
inline void store(bf16* to, Vec a) {
  const HalfLanes half = narrow(a);
  __builtin_memcpy(static_cast<void*>(to), &half, sizeof half);
}

/// Rounds a to the element type of the pointer, as if a were stored in this type and loaded again.
/// The pointer only selects the type and may be null.
inline Vec round_to(const float*, Vec a) { return a; }
inline Vec round_to(const bf16*, Vec a) { return widen(narrow(a)); }

/// Loads the first n lanes, 0 <= n <= lanes. All other lanes are 0.
inline Vec load_first(const float* from, int n) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<FloatLanes>(
      _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1u), from));
#elif defined(LONGHAND_ISA_IS_AVX2)
  return reinterpret_cast<FloatLanes>(
      _mm256_maskload_ps(from, reinterpret_cast<__m256i>(first(n).v)));
#else
  FloatLanes v{};
  for (int i = 0; i < lanes; ++i) v[i] = i < n ? from[i] : 0.0f;
  return v;
#endif
}
inline IntVec load_first(const std::int32_t* from, int n) {
#if defined(LONGHAND_SIMD_AVX512)
  return reinterpret_cast<IntLanes>(
      _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1u << n) - 1u), from));
#else
  IntLanes v{};
  for (int i = 0; i < lanes; ++i) v[i] = i < n ? from[i] : 0;
  return v;
#endif
}
inline Vec load_first(const bf16* from, int n) {
#if defined(LONGHAND_SIMD_AVX512)
  return widen(reinterpret_cast<HalfLanes>(
      _mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << n) - 1u), from)));
#else
  HalfLanes v{};
  for (int i = 0; i < lanes; ++i) v[i] = i < n ? from[i].bits : std::uint16_t{0};
  return widen(v);
#endif
}
inline void store_first(float* to, Vec a, int n) {
#if defined(LONGHAND_SIMD_AVX512)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1u), a.v);
#elif defined(LONGHAND_ISA_IS_AVX2)
  _mm256_maskstore_ps(to, reinterpret_cast<__m256i>(first(n).v), a.v);
#else
  for (int i = 0; i < n; ++i) to[i] = a.v[i];
#endif
}
inline void store_first(bf16* to, Vec a, int n) {
  const HalfLanes half = narrow(a);
#if defined(LONGHAND_SIMD_AVX512)
  _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << n) - 1u),
                           reinterpret_cast<__m256i>(half));
#else
  for (int i = 0; i < n; ++i) to[i].bits = half[i];
#endif
}

/// Non-temporal store, for results that are too large to stay in the caches until they are read. A
/// normal store would first read each cache line that it overwrites. `to` must be aligned to the
/// size of the store. stream_fence() must be called before another thread reads the data.
inline void stream(float* to, Vec a) {
#if defined(LONGHAND_SIMD_AVX512)
  _mm512_stream_ps(to, a.v);
#elif defined(LONGHAND_ISA_IS_AVX2)
  _mm256_stream_ps(to, a.v);
#elif defined(__x86_64__)
  _mm_stream_ps(to, a.v);
#else
  store(to, a);
#endif
}
inline void stream(bf16* to, Vec a) {
#if defined(LONGHAND_SIMD_AVX512)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(narrow(a)));
#elif defined(LONGHAND_ISA_IS_AVX2)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), reinterpret_cast<__m128i>(narrow(a)));
#else
  store(to, a);
#endif
}
inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Functions on pairs of neighbouring numbers.

/// Splits the 2 * lanes numbers x0, x1, ... in `low` and `high` into even = x0, x2, ... and odd =
/// x1, x3, ...
inline void split_pairs(Vec low, Vec high, Vec& even, Vec& odd) {
#if defined(LONGHAND_SIMD_AVX512)
  even = __builtin_shufflevector(low.v, high.v, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                 28, 30);
  odd = __builtin_shufflevector(low.v, high.v, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                29, 31);
#elif defined(LONGHAND_ISA_IS_AVX2)
  even = __builtin_shufflevector(low.v, high.v, 0, 2, 4, 6, 8, 10, 12, 14);
  odd = __builtin_shufflevector(low.v, high.v, 1, 3, 5, 7, 9, 11, 13, 15);
#else
  even = __builtin_shufflevector(low.v, high.v, 0, 2, 4, 6);
  odd = __builtin_shufflevector(low.v, high.v, 1, 3, 5, 7);
#endif
}
/// The inverse of split_pairs(): stores even[0], odd[0], even[1], odd[1], ... in `low` and then
/// `high`.
inline void join_pairs(Vec even, Vec odd, Vec& low, Vec& high) {
#if defined(LONGHAND_SIMD_AVX512)
  low = __builtin_shufflevector(even.v, odd.v, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                23);
  high = __builtin_shufflevector(even.v, odd.v, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14,
                                 30, 15, 31);
#elif defined(LONGHAND_ISA_IS_AVX2)
  low = __builtin_shufflevector(even.v, odd.v, 0, 8, 1, 9, 2, 10, 3, 11);
  high = __builtin_shufflevector(even.v, odd.v, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  low = __builtin_shufflevector(even.v, odd.v, 0, 4, 1, 5);
  high = __builtin_shufflevector(even.v, odd.v, 2, 6, 3, 7);
#endif
}

// Reductions of a vector.

/// Adds the two halves of the vector, then the two halves of the result, and so on.
inline float sum(Vec a) {
#if defined(LONGHAND_SIMD_AVX512)
  const __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
#elif defined(LONGHAND_ISA_IS_AVX2)
  const __m256 h = a.v;
#endif
#if defined(LONGHAND_SIMD_FOUR_LANES)
  const float x = a.v[0] + a.v[2], y = a.v[1] + a.v[3];
  return x + y;
#else
  const __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 p = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(p, _mm_shuffle_ps(p, p, 1)));
#endif
}

/// The partial sums of a long sum: sixteen on every instruction set, in one vector or several.
/// Entry i of the sum belongs to the partial sum i mod 16, so the order of additions, and thus the
/// bits of the total, do not depend on the length of a vector.
struct Sums {
  static constexpr int count = 16, vectors = count / lanes;
  Vec part[vectors];
  Sums() {
    for (Vec& p : part) p = Vec(0.0);
  }
  friend Sums operator+(Sums a, const Sums& b) {
    for (int p = 0; p < vectors; ++p) a.part[p] += b.part[p];
    return a;
  }
};
/// Adds the partial sums as if they were the lanes of one vector.
inline float sum(Sums a) {
  for (int half = Sums::vectors / 2; half > 0; half /= 2) {
    for (int p = 0; p < half; ++p) a.part[p] += a.part[p + half];
  }
  return sum(a.part[0]);
}

/// The maximum over the lanes. The result is unspecified if a lane is NaN.
inline float max(Vec a) {
#if defined(LONGHAND_SIMD_AVX512)
  const __m256 h = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
#elif defined(LONGHAND_ISA_IS_AVX2)
  const __m256 h = a.v;
#endif
#if defined(LONGHAND_SIMD_FOUR_LANES)
  const float x = a.v[0] > a.v[2] ? a.v[0] : a.v[2], y = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return x > y ? x : y;
#else
  const __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
  const __m128 p = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(p, _mm_shuffle_ps(p, p, 1)));
#endif
}

inline bool any(Mask mask) {
#if defined(LONGHAND_SIMD_AVX512)
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(mask.v),
                                reinterpret_cast<__m512i>(mask.v)) != 0;
#elif defined(LONGHAND_ISA_IS_AVX2)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask.v)) != 0;
#elif defined(__x86_64__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(mask.v)) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32(reinterpret_cast<uint32x4_t>(mask.v)) != 0;
#elif defined(__wasm__)
  return wasm_v128_any_true(reinterpret_cast<v128_t>(mask.v));
#else
  std::int32_t all = 0;
  for (int i = 0; i < lanes; ++i) all |= mask.v[i];
  return all != 0;
#endif
}

#undef LONGHAND_SIMD_AVX512
#undef LONGHAND_SIMD_FOUR_LANES

}  // namespace longhand::cpu::LONGHAND_ISA
