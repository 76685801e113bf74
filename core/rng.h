#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace longhand {

/// What a stream of random numbers is for; part of its name, so that no two uses share numbers.
enum class Purpose : std::uint32_t { parameters, data, evaluation, dropout, sampling, test };

/// Philox4x32-10: four 32-bit words from a 128-bit counter and a 64-bit key, ten rounds of
/// multiply, exchange and xor (Salmon et al. 2011). It has no state: word n of a stream is a pure
/// function of the stream's name and n, the same on every backend and for any number of threads.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key);

/// The stream named (seed, purpose, step, index): at most 2^32 blocks of four words.
/// Counter: {block, index, step low, purpose * 2^24 + step high}; key: the seed's two halves.
class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose, std::uint64_t step = 0, std::uint32_t index = 0);

  std::uint32_t next();                       // uniform on all 32-bit words
  void next(std::span<std::uint32_t> words);  // as many of them, faster
  std::uint32_t below(std::uint32_t bound);   // uniform on [0, bound), without bias
  double uniform();                           // [0, 1) with 53 bits
  double normal();                            // mean 0, variance 1 (Box-Muller)
  bool chance(double probability) { return uniform() < probability; }

  /// A uniformly random order of [first, last) (Fisher-Yates).
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
