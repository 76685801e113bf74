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
///   factors()   reads the factors and shifts of `count` parts. These are all parts of one block
///               of eight, or the parts of `count` blocks that follow each other
///   integers()  returns the integers q of one part of a block
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

/// Reads `count` IEEE binary16 numbers, at most eight, that are `step` bytes apart. The other
/// numbers of the result are 0.
[[gnu::always_inline]] inline EightFloats halves_at(const std::byte* from, int step, int count) {
  EightFloats numbers{};
#if defined(__F16C__)
  using EightHalves [[gnu::vector_size(16)]] = std::int16_t;
  EightHalves halves{};
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i < count) halves[i] = load_raw<std::int16_t>(from + i * step);
  }
  numbers.part[0] =
      reinterpret_cast<FourByteFloats>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(halves)));
#else
  float floats[8] = {};
  for (int i = 0; i < count; ++i) floats[i] = half_at(from + i * step);
  numbers = load_floats(floats);
#endif
  return numbers;
}

/// Factors and shifts of up to eight parts.
struct Factors {
  EightFloats low, high;  // factors of the first and the last 16 numbers of each part
  EightFloats shift;      // 0 if the type has no shifts
};

/// A type with one part per block. A block begins with its factor, followed by its shift if the
/// type has shifts.
template <int bytes_of_block, int subtracted, bool with_shifts, bool with_signs>
struct OnePartBlocks {
  static constexpr int parts = 1, bytes = bytes_of_block, centre = subtracted;
  static constexpr bool is_signed = with_signs, shifts = with_shifts, equal = true;
  static constexpr int begin = shifts ? 4 : 2;  // where the integers begin

  [[gnu::always_inline]] static Factors factors(const std::byte* block, int count) {
    const EightFloats factor = halves_at(block, bytes, count);
    return {factor, factor, shifts ? halves_at(block + 2, bytes, count) : EightFloats{}};
  }
};

struct Q8Blocks : OnePartBlocks<34, 0, false, true> {
  static Bytes integers(const std::byte* block, int) { return load_bytes(block + begin); }
};
struct Q4Blocks : OnePartBlocks<18, 8, false, false> {
  static Bytes integers(const std::byte* block, int) { return halves_of(block + begin); }
};
struct ShiftedQ4Blocks : OnePartBlocks<20, 0, true, false> {
  static Bytes integers(const std::byte* block, int) { return halves_of(block + begin); }
};

/// Integers of five bits. The 32 fifth bits come first, followed by the other four of each integer.
[[gnu::always_inline]] inline Bytes five_bits(const std::byte* from) {
  return halves_of(from + 4) | sixteen_where(load_raw<std::uint32_t>(from));
}
struct Q5Blocks : OnePartBlocks<22, 16, false, false> {
  static Bytes integers(const std::byte* block, int) { return five_bits(block + begin); }
};
struct ShiftedQ5Blocks : OnePartBlocks<24, 0, true, false> {
  static Bytes integers(const std::byte* block, int) { return five_bits(block + begin); }
};

/// Reads the factors and shifts of Q4_K and Q5_K: numbers of six bits, packed into twelve bytes.
[[gnu::always_inline]] inline Factors packed_factors(const std::byte* block) {
  // Each of these integers has four bytes. All shifts below move bits within a byte.
  const auto four = [&](int i) { return load_raw<std::uint32_t>(block + 4 + 4 * i); };
  const std::uint32_t a = four(0), b = four(1), c = four(2), six = 0x3f3f3f3f, low = 0x0f0f0f0f;
  const auto top = [](std::uint32_t x) { return (x >> 6 & 0x03030303) << 4; };
  const std::uint32_t factors[2] = {a & six, (c & low) | top(a)};
  const std::uint32_t shifts[2] = {b & six, (c >> 4 & low) | top(b)};
  const auto floats = [](const std::uint32_t(&bytes)[2]) {
    return eight_floats(reinterpret_cast<const std::uint8_t*>(bytes));
  };
  const EightFloats factor = floats(factors) * half_at(block);
  return {factor, factor, floats(shifts) * -half_at(block + 2)};
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
  [[gnu::always_inline]] static Factors factors(const std::byte* block, int) {
    return packed_factors(block);
  }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    return half_bytes(block + 16, part);
  }
};

struct Q5KBlocks {
  static constexpr int parts = 8, bytes = 176, centre = 0;
  static constexpr bool is_signed = false, shifts = true, equal = true;
  [[gnu::always_inline]] static Factors factors(const std::byte* block, int) {
    return packed_factors(block);
  }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    return half_bytes(block + 48, part) | ((load_bytes(block + 16) >> part & 1) << 4);
  }
};

struct Q6KBlocks {
  static constexpr int parts = 8, bytes = 210, centre = 32;
  static constexpr bool is_signed = false, shifts = false, equal = false;
  [[gnu::always_inline]] static Factors factors(const std::byte* block, int) {
    // Factors of a part's first and last numbers alternate. Each is a signed byte times `whole`.
    const float whole = half_at(block + 208);
    std::int8_t small[2][8];
    for (int i = 0; i < 16; ++i) small[i % 2][i / 2] = static_cast<std::int8_t>(block[192 + i]);
    return {eight_floats(small[0]) * whole, eight_floats(small[1]) * whole, {}};
  }
  [[gnu::always_inline]] static Bytes integers(const std::byte* block, int part) {
    const int half = part / 4, quarter = part % 4;
    const Bytes both = load_bytes(block + half * 64 + quarter % 2 * 32);
    const Bytes four = quarter < 2 ? both & 15 : both >> 4;
    return four | ((load_bytes(block + 128 + half * 32) >> (2 * quarter) & 3) << 4);
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA
