#pragma once

#include <cstdint>
#include <span>

#include "core/parallel.h"
#include "core/tensor.h"

namespace longhand::nn {

/// A stream of normally distributed random numbers. Apart from the mean and the deviation, number i
/// depends only on (seed, stream, i), not on the number of threads or the backend.
struct NormalStream {
  std::uint64_t seed = 0, stream = 0;
  float mean = 0, deviation = 1;
};

// Number of random numbers that a thread generates at a time.
inline constexpr std::int64_t normal_chunk = 1 << 14;

/// Fills `values` with consecutive numbers of the random stream, beginning with the number at index
/// `first`. `first` must be a multiple of normal_chunk.
void fill_normal(const NormalStream& numbers, ThreadPool& pool, std::int64_t first,
                 std::span<float> values);
/// Fills x with the first x.size() numbers of the stream. The numbers are computed in f32 and
/// converted to the type of x.
void upload_normal(const NormalStream& numbers, ThreadPool& pool, const Tensor& x);

}  // namespace longhand::nn
