#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/target.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

namespace longhand::cpu {

/// Sums over the rows of a matrix are computed in chunks of rows. partial_rows() returns the number
/// of rows of a chunk. It is at least 16, so that the sums of the chunks need little memory
/// compared with the rows. partial_chunks() returns the number of chunks, which is at most 64.
std::int64_t partial_rows(std::int64_t rows);
std::int64_t partial_chunks(std::int64_t rows);

/// Column sums of each chunk of rows, one row of sums per chunk. combine() adds these rows in the
/// order of the chunks, so the result does not depend on how chunks are distributed over threads.
class PartialSums {
 public:
  /// y is the target of the final sums. If y is empty, nothing is allocated or stored.
  PartialSums(const Target& y, std::int64_t chunks, std::int64_t columns);

  /// The sums of one chunk, initially zero; null if the target is empty.
  float* part(std::int64_t chunk) {
    return sums_.empty() ? nullptr : sums_.data() + chunk * columns_;
  }
  /// Adds the sums of all chunks and multiplies the result by alpha. Stores it in the target y, or
  /// adds it to y if Target::add is true.
  void combine(ThreadPool& threads, Isa isa, double alpha);

 private:
  Target y_;
  std::int64_t columns_;
  std::int64_t chunks_;
  std::vector<float> sums_;
};

}  // namespace longhand::cpu
