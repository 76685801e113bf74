#pragma once

#include "core/cpu/blocks/integers.h"

/// The types of blocks of GGUF files (core/gguf_blocks.cpp explains their layouts). A type divides
/// the numbers of a block into parts of 32. A number is
///   (q - centre) factor + shift,
/// where q is an integer of 8 bits or less. The first and the last 16 numbers of a part may have
/// different factors. The members of a type are:
///   parts       number of parts of a block
///   bytes       bytes of a block
///   centre      see the formula
///   is_signed   true if q may be negative
///   shifts      true if the type has shifts
///   equal       true if all numbers of a part have the same factor
///   factors()   reads the factors and shifts of all parts
///   integers()  returns the integers q of one part
namespace longhand::cpu::LONGHAND_ISA {

/// The value of an IEEE binary16 number. from_f16() (core/float16.h) is not called, because kernels
/// share no inline code with other files.
[[gnu::always_inline]] inline float half_at(const std::byte* from) {
  std::uint16_t half;
  __builtin_memcpy(&half, from, sizeof half);
#if defined(__F16C__)
  return _cvtsh_ss(half);
#else
  // Moves exponent and fraction to their places in a float. The exponents of the two formats differ
  // by 112. If the half is subnormal, the float with these bits is subnormal too, so that the
  // product is right for both kinds of numbers.
  const std::uint32_t size = static_cast<std::uint32_t>(half & 0x7fffu) << 13;
  const bool finite = (half & 0x7c00u) != 0x7c00u;
  const float number = finite ? __builtin_bit_cast(float, size) * 0x1p112f
                              : __builtin_bit_cast(float, size | 0x7f800000u);
  return (half & 0x8000u) ? -number : number;
#endif
}

/// The factors and shifts of a block's parts.
template <int parts>
struct Factors {
  float low[parts], high[parts];  // factors of the first and the last 16 numbers of a part
  float shift[parts];
  void set(int part, float factor, float shift_of_part = 0) {
    low[part] = high[part] = factor;
    shift[part] = shift_of_part;
  }
};

struct Q8Blocks {
  static constexpr int parts = 1, bytes = 34, centre = 0;
  static constexpr bool is_signed = true, shifts = false, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) { f.set(0, half_at(block)); }
  static Bytes integers(const std::byte* block, int) { return load_bytes(block + 2); }
};

struct Q4Blocks {
  static constexpr int parts = 1, bytes = 18, centre = 8;
  static constexpr bool is_signed = false, shifts = false, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) { f.set(0, half_at(block)); }
  static Bytes integers(const std::byte* block, int) { return halves_of(block + 2); }
};

struct ShiftedQ4Blocks {
  static constexpr int parts = 1, bytes = 20, centre = 0;
  static constexpr bool is_signed = false, shifts = true, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) {
    f.set(0, half_at(block), half_at(block + 2));
  }
  static Bytes integers(const std::byte* block, int) { return halves_of(block + 4); }
};

[[gnu::always_inline]] inline Bytes five_bits(const std::byte* fifth, const std::byte* four) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, fifth, sizeof bits);
  return halves_of(four) | sixteen_where(bits);
}

struct Q5Blocks {
  static constexpr int parts = 1, bytes = 22, centre = 16;
  static constexpr bool is_signed = false, shifts = false, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) { f.set(0, half_at(block)); }
  static Bytes integers(const std::byte* block, int) { return five_bits(block + 2, block + 6); }
};

struct ShiftedQ5Blocks {
  static constexpr int parts = 1, bytes = 24, centre = 0;
  static constexpr bool is_signed = false, shifts = true, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) {
    f.set(0, half_at(block), half_at(block + 2));
  }
  static Bytes integers(const std::byte* block, int) { return five_bits(block + 4, block + 8); }
};

/// Reads the factors and shifts of Q4_K and Q5_K: numbers of six bits, packed into twelve bytes.
inline void packed_factors(const std::byte* block, Factors<8>& f) {
  const float factor = half_at(block), shift = half_at(block + 2);
  const auto byte = [&](int i) { return static_cast<int>(block[4 + i]); };
  for (int i = 0; i < 4; ++i) {
    f.set(i, factor * static_cast<float>(byte(i) & 63),
          -(shift * static_cast<float>(byte(i + 4) & 63)));
    const int later_factor = (byte(i + 8) & 15) | byte(i) >> 6 << 4;
    const int later_shift = byte(i + 8) >> 4 | byte(i + 4) >> 6 << 4;
    f.set(i + 4, factor * static_cast<float>(later_factor),
          -(shift * static_cast<float>(later_shift)));
  }
}

/// The integers of one part. Each group of 32 bytes stores two parts: one in the low halves of its
/// bytes, and one in the high halves.
[[gnu::always_inline]] inline Bytes half_bytes(const std::byte* groups, int part) {
  const Bytes both = load_bytes(groups + part / 2 * 32);
  return part % 2 == 0 ? both & 15 : both >> 4;
}

struct Q4KBlocks {
  static constexpr int parts = 8, bytes = 144, centre = 0;
  static constexpr bool is_signed = false, shifts = true, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) { packed_factors(block, f); }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    return half_bytes(block + 16, part);
  }
};

struct Q5KBlocks {
  static constexpr int parts = 8, bytes = 176, centre = 0;
  static constexpr bool is_signed = false, shifts = true, equal = true;
  static void factors(const std::byte* block, Factors<parts>& f) { packed_factors(block, f); }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    return half_bytes(block + 48, part) | ((load_bytes(block + 16) >> part & 1) << 4);
  }
};

struct Q6KBlocks {
  static constexpr int parts = 8, bytes = 210, centre = 32;
  static constexpr bool is_signed = false, shifts = false, equal = false;
  static void factors(const std::byte* block, Factors<parts>& f) {
    const float factor = half_at(block + 208);
    const auto small = [&](int i) {
      return static_cast<float>(static_cast<std::int8_t>(block[192 + i]));
    };
    for (int i = 0; i < parts; ++i) {
      f.low[i] = factor * small(2 * i);
      f.high[i] = factor * small(2 * i + 1);
      f.shift[i] = 0;
    }
  }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    const int half = part / 4, quarter = part % 4;
    const Bytes both = load_bytes(block + half * 64 + quarter % 2 * 32);
    const Bytes four = quarter < 2 ? both & 15 : both >> 4;
    return four | ((load_bytes(block + 128 + half * 32) >> (2 * quarter) & 3) << 4);
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA
