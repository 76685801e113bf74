#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu/simd.h"

/// Vectors of 32 integers of 8 bits. Such a vector is one register with AVX2 and stronger sets, and
/// two registers of 16 integers otherwise.
namespace longhand::cpu::LONGHAND_ISA {

#if defined(LONGHAND_ISA_IS_AVX2) || defined(LONGHAND_ISA_IS_AVX512)
inline constexpr int byte_registers = 1;
#define LONGHAND_BLOCKS_AVX2  // removed by #undef at the end of this file
#else
inline constexpr int byte_registers = 2;
#endif

using ByteLanes [[gnu::vector_size(32 / byte_registers)]] = std::uint8_t;
using ShortLanes [[gnu::vector_size(32 / byte_registers)]] = std::int16_t;
using UnsignedShortLanes [[gnu::vector_size(32 / byte_registers)]] = std::uint16_t;
using FourBytes [[gnu::vector_size(32 / byte_registers)]] = std::int32_t;
using FourByteFloats [[gnu::vector_size(32 / byte_registers)]] = float;

struct Bytes {
  ByteLanes part[byte_registers];
  friend Bytes operator|(Bytes a, Bytes b) {
    for (int r = 0; r < byte_registers; ++r) a.part[r] |= b.part[r];
    return a;
  }
  friend Bytes operator&(Bytes a, std::uint8_t mask) {
    for (int r = 0; r < byte_registers; ++r) a.part[r] &= mask;
    return a;
  }
  /// Shifts every byte. The bits that cross from one byte to its neighbour are cleared.
  friend Bytes operator>>(Bytes a, int bits) {
    for (int r = 0; r < byte_registers; ++r) {
      const auto shifted = reinterpret_cast<UnsignedShortLanes>(a.part[r]) >> bits;
      a.part[r] = reinterpret_cast<ByteLanes>(shifted);
    }
    return a & static_cast<std::uint8_t>(255 >> bits);
  }
  friend Bytes operator<<(Bytes a, int bits) {
    for (int r = 0; r < byte_registers; ++r) {
      const auto shifted = reinterpret_cast<UnsignedShortLanes>(a.part[r]) << bits;
      a.part[r] = reinterpret_cast<ByteLanes>(shifted);
    }
    return a & static_cast<std::uint8_t>(255 << bits);
  }
};

[[gnu::always_inline]] inline Bytes load_bytes(const void* from) {
  Bytes a;
  for (int r = 0; r < byte_registers; ++r) {
    a.part[r] = load_raw<ByteLanes>(static_cast<const char*>(from) + r * sizeof(ByteLanes));
  }
  return a;
}

/// The low halves of 16 bytes, then their high halves.
inline Bytes halves_of(const void* from) {
#if defined(LONGHAND_BLOCKS_AVX2)
  const __m256i twice =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(from)));
  const __m256i both = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
  return {{reinterpret_cast<ByteLanes>(both) & 15}};
#else
  const ByteLanes bytes = load_raw<ByteLanes>(from);
  const auto high = reinterpret_cast<UnsignedShortLanes>(bytes) >> 4;
  return {{bytes & 15, reinterpret_cast<ByteLanes>(high) & 15}};
#endif
}

/// Byte i is 16 if bit i of `bits` is set, otherwise 0.
inline Bytes sixteen_where(std::uint32_t bits) {
#if defined(LONGHAND_BLOCKS_AVX2)
  // Copies byte i / 8 of `bits` to byte i, and selects bit i % 8 of it.
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(static_cast<int>(bits)),
      _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201u));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  return {{reinterpret_cast<ByteLanes>(set) & 16}};
#else
  alignas(32) std::uint8_t bytes[32];
  for (int i = 0; i < 32; ++i) bytes[i] = static_cast<std::uint8_t>((bits >> i & 1u) << 4);
  return load_bytes(bytes);
#endif
}

/// Eight sums of four products each: sum j is over the bytes 4 j to 4 j + 3.
struct EightInts {
  FourBytes part[byte_registers];
};
/// Eight floats. In a sum of products, lane j belongs to the bytes 4 j to 4 j + 3.
struct EightFloats {
  FourByteFloats part[byte_registers];

  float operator[](int i) const {
    constexpr int of_register = 8 / byte_registers;
    return part[i / of_register][i % of_register];
  }
  friend EightFloats operator*(EightFloats a, const EightFloats& b) {
    for (int r = 0; r < byte_registers; ++r) a.part[r] *= b.part[r];
    return a;
  }
  friend EightFloats operator*(EightFloats a, float b) {
    for (int r = 0; r < byte_registers; ++r) a.part[r] *= b;
    return a;
  }
  friend EightFloats operator+(EightFloats a, const EightFloats& b) {
    a += b;
    return a;
  }
  friend EightFloats operator-(EightFloats a, const EightFloats& b) {
    for (int r = 0; r < byte_registers; ++r) a.part[r] -= b.part[r];
    return a;
  }
  EightFloats& operator+=(const EightFloats& b) {
    for (int r = 0; r < byte_registers; ++r) part[r] += b.part[r];
    return *this;
  }
};

/// Eight integers as floats.
template <class Integer>
[[gnu::always_inline]] inline EightFloats eight_floats(const Integer* integers) {
  using Few [[gnu::vector_size(sizeof(Integer) * 8 / byte_registers)]] = Integer;
  EightFloats floats;
  for (int r = 0; r < byte_registers; ++r) {
    const auto few = load_raw<Few>(integers + r * (8 / byte_registers));
    floats.part[r] = __builtin_convertvector(few, FourByteFloats);
  }
  return floats;
}
[[gnu::always_inline]] inline EightFloats load_floats(const float* from) {
  EightFloats floats;
  __builtin_memcpy(&floats, from, sizeof floats);
  return floats;
}

/// Sums of products of the integers of a and b. The integers of a are in [0, 127], or in [-128,
/// 127] if is_signed is true. Those of b are in [-127, 127]. A sum of two products then fits into
/// 16 bits.
template <bool is_signed>
[[gnu::always_inline]] inline EightInts sums_of_products(const Bytes& a, const Bytes& b) {
  EightInts sums;
#if defined(LONGHAND_BLOCKS_AVX2)
  auto left = reinterpret_cast<__m256i>(a.part[0]), right = reinterpret_cast<__m256i>(b.part[0]);
  if constexpr (is_signed) {
    // The instruction multiplies unsigned by signed integers: |a| (sign(a) b) = a b.
    right = _mm256_sign_epi8(right, left);
    left = _mm256_abs_epi8(left);
  }
  const __m256i pairs = _mm256_maddubs_epi16(left, right);
  sums.part[0] = reinterpret_cast<FourBytes>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#else
  for (int r = 0; r < byte_registers; ++r) {
    // An odd byte is the upper half of a 16-bit integer, and an even byte is the lower half.
    const auto left = reinterpret_cast<ShortLanes>(a.part[r]);
    const auto right = reinterpret_cast<ShortLanes>(b.part[r]);
    const ShortLanes pairs = (left >> 8) * (right >> 8) + ((left << 8) >> 8) * ((right << 8) >> 8);
    const auto words = reinterpret_cast<FourBytes>(pairs);
    sums.part[r] = (words >> 16) + ((words << 16) >> 16);
  }
#endif
  return sums;
}

/// Adds integers_j * low to sums_j for j < 4, and integers_j * high for j >= 4.
template <bool equal>
[[gnu::always_inline]] inline void add_scaled(EightFloats& sums, const EightInts& integers,
                                              float low, float high) {
#if defined(LONGHAND_BLOCKS_AVX2)
  const __m256 numbers =
      reinterpret_cast<__m256>(__builtin_convertvector(integers.part[0], FourByteFloats));
  const __m256 factors =
      equal ? _mm256_set1_ps(low) : _mm256_set_m128(_mm_set1_ps(high), _mm_set1_ps(low));
  sums.part[0] = reinterpret_cast<FourByteFloats>(
      _mm256_fmadd_ps(numbers, factors, reinterpret_cast<__m256>(sums.part[0])));
#else
  sums.part[0] += __builtin_convertvector(integers.part[0], FourByteFloats) * low;
  sums.part[1] += __builtin_convertvector(integers.part[1], FourByteFloats) * high;
#endif
}

[[gnu::always_inline]] inline float sum(const EightFloats& a, const EightFloats& b) {
  using Quarter [[gnu::vector_size(16)]] = float;
#if defined(LONGHAND_BLOCKS_AVX2)
  const auto whole = reinterpret_cast<__m256>(a.part[0] + b.part[0]);
  const auto four = reinterpret_cast<Quarter>(
      _mm_add_ps(_mm256_castps256_ps128(whole), _mm256_extractf128_ps(whole, 1)));
#else
  const Quarter four = (a.part[0] + b.part[0]) + (a.part[1] + b.part[1]);
#endif
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/// The `lanes` integers of `bytes` from index `first` on, minus `centre`, as floats.
template <bool is_signed>
[[gnu::always_inline]] inline Vec floats_at(const std::uint8_t* bytes, int first, int centre) {
  IntLanes integers;
  using Few [[gnu::vector_size(lanes)]] = std::uint8_t;
  using SignedFew [[gnu::vector_size(lanes)]] = std::int8_t;
  if constexpr (is_signed) {
    integers = __builtin_convertvector(load_raw<SignedFew>(bytes + first), IntLanes);
  } else {
    integers = __builtin_convertvector(load_raw<Few>(bytes + first), IntLanes);
  }
  return to_float(IntVec(integers - centre));
}

#undef LONGHAND_BLOCKS_AVX2

}  // namespace longhand::cpu::LONGHAND_ISA
