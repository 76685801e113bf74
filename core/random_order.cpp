#include "core/random_order.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace longhand {

RandomOrder::RandomOrder(std::uint64_t count, std::uint64_t seed, Purpose purpose,
                         std::uint64_t epoch)
    : count_(count), seed_(seed), epoch_(epoch), purpose_(purpose) {
  LONGHAND_CHECK(count > 0, "random order: expected a count of at least 1, got 0");
  half_ = std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2);
}

std::uint64_t RandomOrder::operator[](std::uint64_t place) const {
  LONGHAND_CHECK(place < count_, "random order: expected an index below ", count_, ", got ", place);
  do {
    place = exchange(place);
  } while (place >= count_);
  return place;
}

std::uint64_t RandomOrder::exchange(std::uint64_t number) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_) - 1;
  std::uint64_t left = number >> half_, right = number & mask;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    Rng f(seed_, purpose_, 16 * epoch_ + round, static_cast<std::uint32_t>(right));
    const std::uint64_t next = left ^ (f.next() & mask);
    left = right;
    right = next;
  }
  return left << half_ | right;
}

}  // namespace longhand
