#include "core/rng.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/elementary.h"
#include "core/error.h"

namespace longhand {
namespace {

/// Number of Philox blocks (of four words each) that are computed together with vector
/// instructions.
constexpr std::uint32_t lanes = 64;

/// Computes the Philox blocks (of four words each) of `lanes` consecutive counters.
void philox_lanes(const std::array<std::uint32_t, 4>& counter, std::array<std::uint32_t, 2> k,
                  std::uint32_t* words) {
  std::uint32_t c0[lanes], c1[lanes], c2[lanes], c3[lanes];
  for (std::uint32_t i = 0; i < lanes; ++i) {
    c0[i] = counter[0] + i;
    c1[i] = counter[1];
    c2[i] = counter[2];
    c3[i] = counter[3];
  }
  for (int round = 0; round < philox_rounds; ++round) {
    for (std::uint32_t i = 0; i < lanes; ++i) {
      philox_round(c0[i], c1[i], c2[i], c3[i], k[0], k[1]);
    }
    raise_philox_key(k[0], k[1]);
  }
  for (std::uint32_t i = 0; i < lanes; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

}  // namespace

Rng::Rng(std::uint64_t seed, Purpose purpose, std::uint64_t step, std::uint32_t index)
    : counter_{0, index, static_cast<std::uint32_t>(step),
               (static_cast<std::uint32_t>(purpose) << 24) |
                   static_cast<std::uint32_t>(step >> 32)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
  LONGHAND_CHECK(step < (std::uint64_t{1} << 56), "rng: expected a step below 2^56, got ", step);
}

std::uint32_t Rng::next() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

void Rng::next(std::span<std::uint32_t> words) {
  while (used_ != 4 && !words.empty()) {
    words.front() = next();
    words = words.subspan(1);
  }
  for (; words.size() >= std::size_t{4} * lanes; words = words.subspan(std::size_t{4} * lanes)) {
    philox_lanes(counter_, key_, words.data());
    counter_[0] += lanes;
  }
  for (std::uint32_t& word : words) word = next();
}

std::uint32_t Rng::below(std::uint32_t bound) {
  LONGHAND_CHECK(bound > 0, "rng: below() needs a bound of at least 1");
  // Lemire 2019: the result is the high word of next() * bound. It is rejected if the low word is
  // below 2^32 mod bound. Without this rejection, some results would be more likely than others.
  const std::uint32_t threshold = (0u - bound) % bound;
  for (;;) {
    const std::uint64_t product = std::uint64_t{next()} * bound;
    if (static_cast<std::uint32_t>(product) >= threshold) {
      return static_cast<std::uint32_t>(product >> 32);
    }
  }
}

double Rng::uniform() {
  const std::uint64_t high = next() >> 5;  // 27 bits
  const std::uint64_t low = next() >> 6;   // 26 bits
  return static_cast<double>((high << 26) | low) * 0x1p-53;
}

double Rng::normal() {
  const double radius = std::sqrt(-2.0 * elementary::log(1.0 - uniform()));
  return radius * elementary::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace longhand
