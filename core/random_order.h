#pragma once

#include <cstdint>

#include "core/rng.h"

namespace longhand {

/// A random order of the numbers 0 ... count - 1. Any place of it is computed by itself: nothing is
/// stored, however large the count.
///
/// A Feistel network exchanges the numbers of 2h bits, the smallest such set that holds them all:
/// round r takes (left, right) to (right, left xor f(right)), f(right) being the first word of the
/// stream (seed, purpose, 16 epoch + r, right). A result that is too large is put in again until it
/// is not (cycle walking), on average less than four times.
class RandomOrder {
 public:
  RandomOrder(std::uint64_t count, std::uint64_t seed, Purpose purpose, std::uint64_t epoch);

  /// The number at a place below count.
  std::uint64_t operator[](std::uint64_t place) const;
  /// A number in [0, 1) that belongs to the epoch.
  double shift() const { return Rng(seed_, purpose_, 16 * epoch_ + rounds, 0).uniform(); }

 private:
  static constexpr std::uint32_t rounds = 12;

  std::uint64_t exchange(std::uint64_t number) const;

  std::uint64_t count_, seed_, epoch_;
  Purpose purpose_;
  int half_;  // h
};

}  // namespace longhand
