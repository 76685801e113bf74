#include "cuda/emulator/fused_sum.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace longhand::emulator {
namespace {

TensorCores chosen = TensorCores::plain;

/// x 2^-shift, rounded toward zero to an integer.
std::int64_t cut(std::int64_t x, int shift) {
  const int by = std::min(shift, 63);
  return x < 0 ? -(-x >> by) : x >> by;
}

/// x 2^exponent, rounded toward zero to an f32.
float cut_to_float(std::int64_t x, int exponent) {
  const auto size = static_cast<std::uint64_t>(x < 0 ? -x : x);
  const int surplus = std::max(static_cast<int>(std::bit_width(size)) - 24, -149 - exponent);
  if (surplus >= 64) return x < 0 ? -0.0f : 0.0f;
  const std::uint64_t kept = surplus > 0 ? size >> surplus << surplus : size;
  const double value = std::ldexp(static_cast<double>(kept), exponent);
  return static_cast<float>(x < 0 ? -value : value);
}

}  // namespace

TensorCoreModel model_of(TensorCores arithmetic) {
  if (arithmetic == TensorCores::sm_80) return {.bits = 24, .bf16_group = 8, .tf32_group = 4};
  return {.bits = 25, .bf16_group = 16, .tf32_group = 8};
}

float fused_sum(int bits, float c, std::span<const Parts> a, std::span<const Parts> b) {
  const Parts first = parts_of(c);
  int largest = first.exponent;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, a[i].exponent + b[i].exponent);
  }
  if (largest <= exponent_of_zero / 2) return c;  // all terms are zero
  // Each significand has 23 fraction bits, so the product of two significands has 46.
  constexpr int fraction = 46;
  const int shift = fraction - bits + largest;
  std::int64_t sum = cut(std::int64_t{first.significand} << 23, shift - first.exponent);
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += cut(std::int64_t{a[i].significand} * b[i].significand,
               shift - a[i].exponent - b[i].exponent);
  }
  return cut_to_float(sum, largest - bits);
}

void set_tensor_cores(TensorCores arithmetic) { chosen = arithmetic; }
TensorCores tensor_cores() { return chosen; }

}  // namespace longhand::emulator
