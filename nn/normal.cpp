#include "nn/normal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "core/backend.h"
#include "core/rng.h"

namespace longhand::nn {
namespace {

/// The value of the polynomial c0 + c1 x + c2 x^2 + ...
template <class... Rest>
float polynomial(float x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return c0;
  } else {
    return c0 + x * polynomial(x, rest...);
  }
}

/// The natural logarithm of u, a float in (0, 1] that is not subnormal. u is written as 2^e (1 + f)
/// with 1 + f in [sqrt(1/2), sqrt 2). The result is then e ln 2 + ln(1 + f).
float log_of(float u) {
  constexpr std::int32_t sqrt_half = 0x3f3504f3;
  const std::int32_t offset = std::bit_cast<std::int32_t>(u) - sqrt_half;
  const auto e = static_cast<float>(offset >> 23);
  const float f = std::bit_cast<float>((offset & 0x007fffff) + sqrt_half) - 1.0f;
  const float q =
      polynomial(f, 0.333333135f, -0.250000089f, 0.200021192f, -0.166679949f, 0.142195538f,
                 -0.124055997f, 0.118881606f, -0.11675588f, 0.0674656704f);
  return e * 0.693147182f + (f - (0.5f * f * f - f * f * f * q));
}

struct Point {
  float cos, sin;
};

/// The cosine and sine of the angle 2 pi turn. `turn` is in [0, 1].
Point on_circle(float turn) {
  // `quarter` is 4 * turn, rounded to the nearest integer (0 .. 4). At a fraction of about one
  // half, a rounding error may select the other neighbour. The remaining angle is then still about
  // pi / 4 or -pi / 4.
  // NOLINTNEXTLINE: lround is avoided because it would be a function call.
  const auto quarter = static_cast<std::int32_t>(4.0f * turn + 0.5f);
  // The angle that remains after `quarter` quarter turns, from -pi / 4 to pi / 4.
  const float t = 6.28318531f * (turn - 0.25f * static_cast<float>(quarter));
  const float t2 = t * t;
  // Taylor polynomials of sin t and cos t. At t = pi / 4, the first omitted term is less than 2^-26
  // of the result.
  const float s = t * polynomial(t2, 1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880);
  const float c = polynomial(t2, 1.0f, -0.5f, 1.0f / 24, -1.0f / 720, 1.0f / 40320);
  const bool swapped = (quarter & 1) != 0;
  const float x = swapped ? s : c, y = swapped ? c : s;
  return {((quarter + 1) & 2) != 0 ? -x : x, (quarter & 2) != 0 ? -y : y};
}

/// Maps random bits to (0, 1]. 0 is excluded because it has no logarithm.
float open_uniform(std::uint32_t word) {
  return (static_cast<float>(static_cast<std::int32_t>(word >> 8)) + 0.5f) * 0x1p-24f;
}

constexpr std::size_t pass = 256;  // number of values that one call of fill_pass() computes

/// Box-Muller transform: each pair of random words determines a radius and an angle, from which two
/// normal numbers are computed.
void fill_pass(const NormalStream& numbers, Rng& rng, float* values) {
  std::uint32_t words[pass];
  rng.next(words);
  for (std::size_t i = 0; i < pass / 2; ++i) {
    const float radius = std::sqrt(-2.0f * log_of(open_uniform(words[2 * i])));
    const Point point = on_circle(open_uniform(words[2 * i + 1]));
    values[2 * i] = numbers.mean + numbers.deviation * (radius * point.cos);
    values[2 * i + 1] = numbers.mean + numbers.deviation * (radius * point.sin);
  }
}

void fill_chunk(const NormalStream& numbers, std::int64_t index, std::span<float> values) {
  Rng rng(numbers.seed, Purpose::parameters, numbers.stream, static_cast<std::uint32_t>(index));
  for (; values.size() >= pass; values = values.subspan(pass)) {
    fill_pass(numbers, rng, values.data());
  }
  if (values.empty()) return;
  float last[pass];
  fill_pass(numbers, rng, last);
  std::copy_n(last, values.size(), values.begin());
}

}  // namespace

void fill_normal(const NormalStream& numbers, ThreadPool& pool, std::int64_t first,
                 std::span<float> values) {
  parallel_for(pool, std::ssize(values), normal_chunk, [&](std::int64_t begin, std::int64_t end) {
    fill_chunk(
        numbers, (first + begin) / normal_chunk,
        values.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
  });
}

void upload_normal(const NormalStream& numbers, ThreadPool& pool, const Tensor& x) {
  // Generates and copies one slice at a time. A slice is small enough to remain in the CPU's cache.
  constexpr std::int64_t most = std::int64_t{1} << 18;
  std::vector<float> slice(static_cast<std::size_t>(std::min(most, x.size())));
  std::vector<double> wide;
  std::vector<bf16> narrow;
  const Tensor flat = x.reshape({x.size()});
  for (std::int64_t first = 0; first < x.size(); first += most) {
    const std::int64_t count = std::min(most, x.size() - first);
    const std::span<float> values(slice.data(), static_cast<std::size_t>(count));
    fill_normal(numbers, pool, first, values);
    const Tensor part = flat.slice(first, count);
    if (x.dtype() == DType::f32) {
      x.backend().upload(part.address(), values.data(), part.bytes());
    } else if (x.dtype() == DType::bf16) {
      narrow.clear();
      for (const float value : values) narrow.emplace_back(value);
      x.backend().upload(part.address(), narrow.data(), part.bytes());
    } else {
      wide.assign(values.begin(), values.end());
      x.backend().upload(part.address(), wide.data(), part.bytes());
    }
  }
}

}  // namespace longhand::nn
