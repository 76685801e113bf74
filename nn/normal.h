#pragma once

#include <cstdint>
#include <span>

#include "core/parallel.h"
#include "core/tensor.h"

namespace longhand::nn {

/// Normal numbers, number i a pure function of (seed, stream, i): neither threads nor the backend
/// change a bit.
struct NormalStream {
  std::uint64_t seed = 0, stream = 0;
  float mean = 0, deviation = 1;
};

inline constexpr std::int64_t normal_chunk = 1 << 14;  // numbers that one thread makes at a time

/// Numbers first, first + 1, ...; first is a multiple of normal_chunk.
void fill_normal(const NormalStream& numbers, ThreadPool& pool, std::int64_t first,
                 std::span<float> values);
/// The first x.size() of them, in f32 whatever x's type: f32 or f64.
void upload_normal(const NormalStream& numbers, ThreadPool& pool, const Tensor& x);

}  // namespace longhand::nn
