#pragma once

#include "core/cpu/simd.h"

/// The kinds of matrix product, such as f32 and bf16 products. Operands are packed as 32-bit words.
/// Each word contains `depth` neighbouring entries of the dimension that the product sums over.
/// Each kind has the functions
///
///   fold(a, b, c)        returns c + a b, summed over the entries of a word
///   rounded(x)           returns x, rounded in the same way as packing rounds it
///   begin(), end()       are called by each thread before and after its products
///
/// If depth is 2, there are also functions that pack pairs of entries:
///
///   neighbours(lo, hi)           returns the words (lo_0, lo_1), (lo_2, lo_3), ..., and then the
///                                same for hi
///   across(a, b)                 returns the words (a_0, b_0), (a_1, b_1), ...
///   put_across(to, a, b)         stores across(a, b)
///   put_rows(a_to, a, b_to, b)   stores the words (a_0, a_1), (a_2, a_3), ... at a_to, and those
///                                of b at b_to
///
/// If packing rounds operands, the scale of the scores multiplies the products instead of an
/// operand. Products on tile registers (`tiled`) have their own layouts: see tile_products.h.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// f32 products.
struct Exact {
  static constexpr int depth = 1, parts = 1;
  static constexpr bool rounds = false, tiled = false;
  static Vec fold(Vec a, Vec b, Vec c) { return fma(a, b, c); }
  static Vec rounded(Vec x) { return x; }
  static void begin() {}
  static void end() {}
};

#if defined(LONGHAND_ISA_IS_AVX512BF16)

/// bf16 products. One instruction adds two products to the f32 sum of each lane.
struct Bf16 {
  static constexpr int depth = 2, parts = 1;
  static constexpr bool rounds = true, tiled = false;

  static Vec fold(Vec a, Vec b, Vec c) {
    return vec(
        _mm512_dpbf16_ps(c.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v)));
  }
  static Vec neighbours(Vec lo, Vec hi) {
    return vec(reinterpret_cast<__m512>(_mm512_cvtne2ps_pbh(hi.v, lo.v)));
  }
  static Vec across(Vec a, Vec b) {
    const __m512i order = reinterpret_cast<__m512i>(
        WordLanes{0x00100000, 0x00110001, 0x00120002, 0x00130003, 0x00140004, 0x00150005,
                  0x00160006, 0x00170007, 0x00180008, 0x00190009, 0x001a000a, 0x001b000b,
                  0x001c000c, 0x001d000d, 0x001e000e, 0x001f000f});
    const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v));
    return vec(reinterpret_cast<__m512>(_mm512_permutexvar_epi16(order, both)));
  }
  static Vec rounded(Vec x) { return round_to(static_cast<const bf16*>(nullptr), x); }
  static void put_across(float* to, Vec a, Vec b) { store(to, across(a, b)); }
  static void put_rows(float* a_to, Vec a, float* b_to, Vec b) {
    const __m512i both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b.v, a.v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a_to), _mm512_castsi512_si256(both));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(b_to), _mm512_extracti64x4_epi64(both, 1));
  }
  static void begin() {}
  static void end() {}

 private:
  static Vec vec(__m512 x) { return reinterpret_cast<FloatLanes>(x); }
};

#else

/// bf16 products for instruction sets that have none: f32 products of operands rounded to bf16.
struct Bf16 {
  static constexpr int depth = 1, parts = 1;
  static constexpr bool rounds = true, tiled = false;
  static Vec fold(Vec a, Vec b, Vec c) { return fma(a, b, c); }
  static Vec rounded(Vec x) { return round_to(static_cast<const bf16*>(nullptr), x); }
  static void begin() {}
  static void end() {}
};

#endif

template <class Product>
concept VectorProduct = !Product::tiled;
template <class Product>
concept TiledProduct = Product::tiled;

/// Prepares the processor for a kind of product, for example by configuring tile registers. The
/// product may be used only while an object of this class exists.
template <class Product>
struct InUse {
  InUse() { Product::begin(); }
  ~InUse() { Product::end(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
