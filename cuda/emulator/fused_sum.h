#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "cuda/emulator/backend.h"

/// Sums of products as tensor cores compute them. One step adds a group of products to a sum c.
/// Each product is exact. The exponent of a product is the sum of its factors' exponents. In each
/// term (c or a product), bits below 2^(largest exponent of all terms - `bits`) are cut off. Then
/// the terms are added exactly, and the sum is rounded toward zero to an f32.
///
///   capability  bits  products in a group, bf16  tf32
///   8.0         24    8                          4
///   9.0         25    16                         8
///
/// Sources: F. A. Khattak and M. Mikaitis, Accurate Models of NVIDIA Tensor Cores, arXiv:2512.07004
/// (for the groups, the truncation and the number of bits, which is given there as 1 or 2 more than
/// the 23 fraction bits of f32); E. Badash et al., Hawkeye: Reproducing GPU-Level Non-Determinism,
/// arXiv:2603.20421. In this model, the exponent of a product may be smaller than that of any f32.
/// A device may limit this exponent.
namespace longhand::emulator {

/// A float as two integers: its value is significand * 2^(exponent - 23).
struct Parts {
  std::int32_t significand, exponent;
};
inline constexpr std::int32_t exponent_of_zero = -4096, exponent_of_infinity = 4096;

inline Parts parts_of(float x) {
  const auto word = std::bit_cast<std::uint32_t>(x);
  const auto exponent = static_cast<std::int32_t>(word >> 23 & 0xff);
  const auto fraction = static_cast<std::int32_t>(word & 0x7fffff);
  if (exponent == 0xff) return {0, exponent_of_infinity};  // infinity or NaN
  if (exponent == 0 && fraction == 0) return {0, exponent_of_zero};
  const std::int32_t size = exponent == 0 ? fraction : fraction | 0x800000;
  return {word >> 31 ? -size : size, exponent == 0 ? -126 : exponent - 127};
}

struct TensorCoreModel {
  int bits, bf16_group, tf32_group;
};
/// The model of how tensor cores of this kind add products. TensorCores::plain has no model and is
/// not allowed.
TensorCoreModel model_of(TensorCores arithmetic);

/// The sum of c and all products a_i b_i, as a tensor core computes it in one step. `bits` is
/// TensorCoreModel::bits. All numbers must be finite.
float fused_sum(int bits, float c, std::span<const Parts> a, std::span<const Parts> b);

/// The arithmetic that set_tensor_cores() has chosen.
TensorCores tensor_cores();

}  // namespace longhand::emulator
