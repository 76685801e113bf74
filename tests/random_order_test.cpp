#include "core/random_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"

BOOST_AUTO_TEST_SUITE(random_order_test)

using namespace longhand;

namespace {

std::vector<std::uint64_t> whole(std::uint64_t count, std::uint64_t seed, std::uint64_t epoch) {
  const RandomOrder order(count, seed, Purpose::test, epoch);
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t place = 0; place < count; ++place) numbers.push_back(order[place]);
  return numbers;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_number_occurs_once) {
  for (const std::uint64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 255, 1000, 4097}) {
    std::vector<std::uint64_t> numbers = whole(count, 3, 5), all(count);
    std::ranges::sort(numbers);
    std::iota(all.begin(), all.end(), 0);
    BOOST_TEST(numbers == all, "of " << count);
  }
}

BOOST_AUTO_TEST_CASE(the_order_depends_on_seed_and_epoch) {
  BOOST_TEST(whole(1000, 1, 2) == whole(1000, 1, 2));
  BOOST_TEST(whole(1000, 1, 2) != whole(1000, 1, 3));
  BOOST_TEST(whole(1000, 1, 2) != whole(1000, 2, 2));
  BOOST_TEST(RandomOrder(9, 1, Purpose::test, 0).shift() !=
             RandomOrder(9, 1, Purpose::test, 1).shift());
}

// In random orders of the numbers 0 to count - 1, each number is equally frequent at each place.
// Each number is followed equally often by each other number.
BOOST_AUTO_TEST_CASE(places_and_neighbours_are_uniform) {
  for (const std::uint64_t count : {3, 5, 6, 23}) {
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> at, after;
    for (std::uint64_t epoch = 0; epoch < 60 * count; ++epoch) {
      const auto numbers = whole(count, 9, epoch);
      for (std::uint64_t place = 0; place < count; ++place) {
        ++at[{place, numbers[place]}];
        if (place > 0) ++after[{numbers[place - 1], numbers[place]}];
      }
    }
    for (const auto& counts : {at, after}) {
      std::vector<double> list;
      for (const auto& [pair, times] : counts) list.push_back(times);
      BOOST_TEST(chi_square_p(list) > 1e-3, "of " << count);
    }
    BOOST_TEST(at.size() == count * count);
    BOOST_TEST(after.size() == count * (count - 1));
  }
}

BOOST_AUTO_TEST_CASE(large_counts_take_no_memory) {
  const std::uint64_t count = (std::uint64_t{1} << 62) + 12345;
  const RandomOrder order(count, 1, Purpose::test, 0);
  double sum = 0;
  for (std::uint64_t place = 0; place < 1000; ++place) {
    BOOST_REQUIRE(order[count - 1 - place] < count);
    sum += static_cast<double>(order[place]) / static_cast<double>(count);
  }
  BOOST_TEST(std::abs(sum / 1000 - 0.5) < 0.04);  // four standard errors of the mean
}

BOOST_AUTO_TEST_CASE(places_outside_the_order_are_refused) {
  BOOST_CHECK_THROW(RandomOrder(0, 1, Purpose::test, 0), Error);
  BOOST_CHECK_THROW(RandomOrder(5, 1, Purpose::test, 0)[5], Error);
}

BOOST_AUTO_TEST_SUITE_END()
