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

}  // namespace longhand
