#pragma once

#include <cstdint>

#include "core/rng.h"

namespace longhand {

/// A random permutation of 0 ... count - 1. Each entry is computed independently, so nothing is
/// stored for any count.
///
/// A Feistel network permutes the numbers of 2h bits, the smallest such set that contains them all:
/// round r maps (left, right) to (right, left xor f(right)), where f(right) is the first word of
/// the stream (seed, purpose, 16 epoch + r, right). A result that is too large is mapped again
/// until it is not (cycle walking), on average less than four times.
class RandomOrder {
 public:
  RandomOrder(std::uint64_t count, std::uint64_t seed, Purpose purpose, std::uint64_t epoch);

  /// The entry at a place below count.
  std::uint64_t operator[](std::uint64_t place) const;
  /// A number in [0, 1) that depends on the epoch only.
  double shift() const { return Rng(seed_, purpose_, 16 * epoch_ + rounds, 0).uniform(); }

 private:
  static constexpr std::uint32_t rounds = 12;

  std::uint64_t exchange(std::uint64_t number) const;

  std::uint64_t count_, seed_, epoch_;
  Purpose purpose_;
  int half_;  // h
};

}  // namespace longhand
