#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/contract/target.h"
#include "core/rng.h"
#include "core/tensor.h"

namespace longhand {

/// y_i is 0 with probability `rate`, otherwise x_i / (1 - rate), so that the mean of y_i over all
/// draws is x_i. The random numbers depend only on seed, step and index (core/rng.h), so they are
/// the same on every backend. For four entries at a time, the generator Philox returns four words
/// of 32 bits:
///   words = philox(counter = {i / 4, index, step, Purpose::dropout * 2^24}, key = halves of seed).
/// Entry i is dropped if words[i mod 4] is less than rate * 2^32. Nothing is saved: the backward
/// pass applies this operation to dy.
///
/// The training step is stored in a tensor, so that recorded operations (such as a CUDA graph) draw
/// new numbers each time they are repeated.
struct Dropout {
  static constexpr std::string_view name = "dropout";
  Tensor x;
  double rate = 0;  // 0 <= rate < 1
  std::uint64_t seed = 0;
  std::uint32_t index = 0;  // differs between the dropout operations of one training step
  Tensor step;              // the current training step, i32 [1]
  Target y;

  std::uint32_t threshold() const;  // rate * 2^32; entries with smaller random words are dropped
  double kept() const { return 1 / (1 - rate); }
  std::array<std::uint32_t, 2> key() const {
    return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  }
};

/// The counter for which Philox returns the random words of the entries 4 * block to 4 * block + 3.
constexpr std::array<std::uint32_t, 4> dropout_counter(std::uint32_t block, std::uint32_t index,
                                                       std::uint32_t step) {
  return {block, index, step, static_cast<std::uint32_t>(Purpose::dropout) << 24};
}

void check(const Dropout& op);

}  // namespace longhand
