#pragma once

#include <array>
#include <cstdint>

#include "core/contract/target.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Computes up to two results, each a row of sums. For each result, every block of a kernel stores
/// a row of partial sums. combine() then adds up these rows in order with a second kernel.
class PartialSums {
 public:
  /// Allocates `parts` rows of `columns` partial sums for each result. An empty target in `results`
  /// means that this result is not required.
  PartialSums(Backend& backend, std::array<Target, 2> results, std::int64_t parts,
              std::int64_t columns);

  /// The memory in which blocks store the partial sums of result 0 or 1: f32 [parts, columns],
  /// initially undefined. Null if the result is not required.
  float* parts(int result) const;
  /// For each result, computes alpha times the sum of its rows of partial sums. The computed row
  /// replaces the values of the result's tensor, or is added to them if Target::add is set.
  void combine(Stream& stream, double alpha) const;

 private:
  std::array<Target, 2> results_;
  std::array<Tensor, 2> sums_;
};

}  // namespace longhand::cuda
