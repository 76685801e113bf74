#pragma once

#include <cstdint>

#include "core/rng.h"

namespace longhand {

/// A random permutation of 0 ... count - 1. An entry is computed when it is requested, so no table
/// is stored.
///
/// A Feistel network permutes the numbers of 2h bits, where h is the smallest positive number for
/// which all numbers below `count` have at most 2h bits. Round r maps the two halves of a number
/// from (left, right) to (right, left xor f(right)). Here f(right) consists of the low h bits of
/// the first word of the random stream (seed, purpose, 16 epoch + r, right) of core/rng.h. Each
/// epoch has 16 values of the stream's step: 12 for the rounds, one for shift(), and three unused.
/// If the result is not less than `count`, it is mapped again, until a result is less (cycle
/// walking). On average, this takes less than four mappings.
class RandomOrder {
 public:
  RandomOrder(std::uint64_t count, std::uint64_t seed, Purpose purpose, std::uint64_t epoch);

  /// Entry `place` of the permutation; `place` must be less than count.
  std::uint64_t operator[](std::uint64_t place) const;
  /// A random number in [0, 1) that depends only on seed, purpose and epoch.
  double shift() const { return Rng(seed_, purpose_, 16 * epoch_ + rounds, 0).uniform(); }

 private:
  static constexpr std::uint32_t rounds = 12;

  std::uint64_t exchange(std::uint64_t number) const;

  std::uint64_t count_, seed_, epoch_;
  Purpose purpose_;
  int half_;  // half the number of bits of the numbers that are permuted
};

}  // namespace longhand
