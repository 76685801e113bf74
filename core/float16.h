#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace longhand {

/// The value of an IEEE binary16 number.
inline float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const int exponent = (bits >> 10) & 0x1f;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float size = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -size : size;
  }
  const auto rebiased = static_cast<std::uint32_t>(exponent + 127 - 15);
  return std::bit_cast<float>(sign | (rebiased << 23) | (fraction << 13));
}

/// The binary16 number nearest to x. Of two numbers at equal distance, the one whose last bit is 0.
/// Numbers of 65520 and more become infinite.
inline std::uint16_t to_f16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (size > 0x7f800000u) {
    half = 0x7e00u;  // NaN
  } else if (size >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (size < 0x38800000u) {  // below 2^-14, numbers are multiples of 2^-24
    half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(size), 24)));
  } else {
    // Removes the low 13 bits of the fraction, with rounding to nearest, ties to even. First adds
    // 2^12 - 1 (just under half a unit of the last kept bit), or 2^12 if the last kept bit is 1.
    // The addition carries into the kept bits exactly when the number must be rounded up.
    const std::uint32_t rebiased = size - (std::uint32_t{127 - 15} << 23);
    half = (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace longhand
