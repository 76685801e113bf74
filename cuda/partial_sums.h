#pragma once

#include <array>
#include <cstdint>

#include "core/contract/target.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Sums rows into one row, for one or two results at once. Each block stores a row of partial sums,
/// and a second launch adds them up in order.
class PartialSums {
 public:
  /// An empty target is skipped.
  PartialSums(Backend& backend, std::array<Target, 2> results, std::int64_t parts,
              std::int64_t columns);

  /// The memory in which blocks store the partial sums of result 0 or 1: f32 [parts, columns],
  /// initially undefined. Null if the result is not required.
  float* parts(int result) const;
  /// y_j = alpha sum over parts p of parts_pj; or += for targets that accumulate.
  void combine(Stream& stream, double alpha) const;

 private:
  std::array<Target, 2> results_;
  std::array<Tensor, 2> sums_;
};

}  // namespace longhand::cuda
