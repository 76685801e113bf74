#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/philox.h"

namespace longhand {

/// The purpose of a random stream. It is part of the stream's name, so different uses never share
/// random numbers.
enum class Purpose : std::uint32_t {
  parameters,
  data,
  evaluation,
  dropout,
  sampling,
  test,
  own,
  split  // division of data into training and test samples
};

/// The random stream with the name (seed, purpose, step, index). It has at most 2^32 blocks of four
/// words. For each block, the Philox counter is {block, index, low half of step, purpose * 2^24 +
/// high half of step}, and the key consists of the two halves of the seed.
class Rng {
 public:
  /// A stream for a program's own random numbers. The library never uses it, so its numbers are
  /// independent of initial weights, dropout and all other streams of the same seed.
  explicit Rng(std::uint64_t seed) : Rng(seed, Purpose::own) {}
  Rng(std::uint64_t seed, Purpose purpose, std::uint64_t step = 0, std::uint32_t index = 0);

  std::uint32_t next();                       // uniform over all 32-bit words
  void next(std::span<std::uint32_t> words);  // fills `words`; faster than a call per word
  std::uint32_t below(std::uint32_t bound);   // uniform on [0, bound), without bias
  double uniform();                           // uniform on [0, 1) with 53 bits
  double normal();                            // normal with mean 0 and variance 1 (Box-Muller)
  bool chance(double probability) { return uniform() < probability; }

  /// Shuffles the range [first, last) uniformly (Fisher-Yates).
  template <class Iterator>
  void shuffle(Iterator first, Iterator last) {
    for (auto n = last - first; n > 1; --n) {
      std::swap(first[n - 1], first[below(static_cast<std::uint32_t>(n))]);
    }
  }

 private:
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace longhand
