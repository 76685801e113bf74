#pragma once

#include <array>
#include <cstdint>

#include "core/contract/target.h"
#include "cuda/stream.h"

namespace longhand::cuda {

/// Rows added up into one, for one or two results at once: blocks leave a row of sums each, which
/// a second launch adds up in their order.
class PartialSums {
 public:
  /// An empty target takes no part.
  PartialSums(Backend& backend, std::array<Target, 2> results, std::int64_t parts,
              std::int64_t columns);

  /// Where the blocks of result 0 or 1 leave their sums, f32 [parts, columns], contents undefined
  /// at first; null when the result is not wanted.
  float* parts(int result) const;
  /// y_j = alpha sum over parts p of parts_pj, or +=
  void combine(Stream& stream, double alpha) const;

 private:
  std::array<Target, 2> results_;
  std::array<Tensor, 2> sums_;
};

}  // namespace longhand::cuda
