#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/target.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::cpu {

/// Rows summed by one chunk when rows are added up into one: at least 16, so that the partial sums
/// are small beside the rows, and no more than 64 chunks.
std::int64_t partial_rows(std::int64_t rows);
std::int64_t partial_chunks(std::int64_t rows);

/// A row of sums for each chunk, added up in the order of the chunks at the end: the result does
/// not depend on who computed which.
class PartialSums {
 public:
  /// Does nothing when the target is empty.
  PartialSums(const Target& y, std::int64_t chunks, std::int64_t columns);

  /// The sums of one chunk, zero at first; null when the target is empty.
  float* part(std::int64_t chunk) {
    return sums_.empty() ? nullptr : sums_.data() + chunk * columns_;
  }
  /// y_j = alpha (sum of the parts), or += .
  void combine(ThreadPool& threads, Isa isa, double alpha);

 private:
  Target y_;
  std::int64_t columns_;
  std::int64_t chunks_;
  std::vector<float> sums_;
};

}  // namespace longhand::cpu
