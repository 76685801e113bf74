#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/target.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::cpu {

/// Number of rows that one chunk sums. It is at least 16, so that the partial sums need little
/// memory compared with the rows. There are at most 64 chunks.
std::int64_t partial_rows(std::int64_t rows);
std::int64_t partial_chunks(std::int64_t rows);

/// Column sums of each chunk of rows, one row of sums per chunk. combine() adds these rows in the
/// order of the chunks, so the result does not depend on how chunks are distributed over threads.
class PartialSums {
 public:
  /// If the target is empty, nothing is allocated or stored.
  PartialSums(const Target& y, std::int64_t chunks, std::int64_t columns);

  /// The sums of one chunk, initially zero; null if the target is empty.
  float* part(std::int64_t chunk) {
    return sums_.empty() ? nullptr : sums_.data() + chunk * columns_;
  }
  /// Computes alpha times the sum of the parts. Stores it in y, or adds it to y if the target adds.
  void combine(ThreadPool& threads, Isa isa, double alpha);

 private:
  Target y_;
  std::int64_t columns_;
  std::int64_t chunks_;
  std::vector<float> sums_;
};

}  // namespace longhand::cpu
