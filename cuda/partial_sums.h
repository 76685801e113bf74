#pragma once

#include <array>
#include <cstdint>

#include "core/contract/target.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Computes one or two rows of sums. Each block of a kernel stores a row of partial sums, and
/// combine() adds these rows up in order with a second kernel.
class PartialSums {
 public:
  /// No sums are computed for an empty target in `results`.
  PartialSums(Backend& backend, std::array<Target, 2> results, std::int64_t parts,
              std::int64_t columns);

  /// The memory in which blocks store the partial sums of result 0 or 1: f32 [parts, columns],
  /// initially undefined. Null if the result is not required.
  float* parts(int result) const;
  /// result_j = alpha sum over p of parts_pj, for each result. Targets say whether the sums are
  /// stored or added.
  void combine(Stream& stream, double alpha) const;

 private:
  std::array<Target, 2> results_;
  std::array<Tensor, 2> sums_;
};

}  // namespace longhand::cuda
