#include "core/rng.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/error.h"

namespace longhand {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                    std::array<std::uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(q),
         static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

Rng::Rng(std::uint64_t seed, Purpose purpose, std::uint64_t step, std::uint32_t index)
    : counter_{0, index, static_cast<std::uint32_t>(step),
               (static_cast<std::uint32_t>(purpose) << 24) |
                   static_cast<std::uint32_t>(step >> 32)},
      key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
  LONGHAND_CHECK(step < (std::uint64_t{1} << 56), "rng: step must be under 2^56, got ", step);
}

std::uint32_t Rng::next() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

std::uint32_t Rng::below(std::uint32_t bound) {
  LONGHAND_CHECK(bound > 0, "rng: below() needs a bound of at least 1");
  // Lemire 2019: the high word of next() * bound is uniform once low words under 2^32 mod bound,
  // which would favour some results, are drawn again.
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
  const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace longhand
