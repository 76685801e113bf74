#include "core/rng.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "tests/chi_square.h"

BOOST_AUTO_TEST_SUITE(rng_test)

using namespace longhand;

namespace {

using Words = std::array<std::uint32_t, 4>;

Words first_words(Rng rng) { return {rng.next(), rng.next(), rng.next(), rng.next()}; }

}  // namespace

// The test vectors published by Random123 for philox4x32-10. In the inputs, all bits are 0, all
// bits are 1, or the bits are the digits of pi.
BOOST_AUTO_TEST_CASE(philox_produces_the_published_words) {
  BOOST_TEST(
      (philox({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const std::uint32_t ones = ~std::uint32_t{0};
  BOOST_TEST((philox({ones, ones, ones, ones}, {ones, ones}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  BOOST_TEST((philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

BOOST_AUTO_TEST_CASE(a_stream_consists_of_the_philox_blocks_of_its_name) {
  const std::uint64_t seed = 0x0123456789abcdef;
  const std::uint64_t step = 0x00fedcba98765432;
  Rng rng(seed, Purpose::dropout, step, 77);
  for (std::uint32_t block = 0; block < 3; ++block) {
    const Words expected = philox({block, 77, 0x98765432, 0x03fedcba}, {0x89abcdef, 0x01234567});
    for (const std::uint32_t word : expected) BOOST_TEST(rng.next() == word);
  }
  BOOST_CHECK_THROW(Rng(1, Purpose::data, std::uint64_t{1} << 56), Error);
}

BOOST_AUTO_TEST_CASE(drawing_words_one_by_one_or_in_bulk_is_the_same) {
  for (const int before : {0, 1, 3}) {
    Rng one(5, Purpose::test, 6, 7), many = one;
    for (int i = 0; i < before; ++i) BOOST_TEST(one.next() == many.next());
    for (const std::size_t count : {0, 2, 255, 256, 257, 1000}) {
      std::vector<std::uint32_t> words(count), expected(count);
      many.next(words);
      for (std::uint32_t& word : expected) word = one.next();
      BOOST_TEST(words == expected);
    }
    BOOST_TEST(one.next() == many.next());
  }
}

BOOST_AUTO_TEST_CASE(a_seed_alone_names_a_stream_of_the_program) {
  const auto first = [](Rng rng) { return rng.next(); };
  BOOST_TEST(first(Rng(1)) == first(Rng(1, Purpose::own)));
  BOOST_TEST(first(Rng(1)) != first(Rng(2)));
  for (int number = 0; number <= static_cast<int>(Purpose::split); ++number) {
    const auto purpose = static_cast<Purpose>(number);
    BOOST_TEST((first(Rng(1)) == first(Rng(1, purpose))) == (purpose == Purpose::own));
  }
}

BOOST_AUTO_TEST_CASE(different_names_have_different_streams) {
  std::set<Words> seen;
  for (const std::uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (const Purpose purpose : {Purpose::parameters, Purpose::data, Purpose::evaluation}) {
      for (const std::uint64_t step : {0ull, 1ull, 1ull << 32, 1ull << 55}) {
        for (const std::uint32_t index : {0u, 1u, 1u << 31}) {
          BOOST_TEST(seen.insert(first_words(Rng(seed, purpose, step, index))).second);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_bit_of_a_word_is_fair) {
  Rng rng(1, Purpose::test);
  const int draws = 1 << 17;
  std::array<double, 32> ones{};
  for (int i = 0; i < draws; ++i) {
    const std::uint32_t word = rng.next();
    for (std::size_t bit = 0; bit < 32; ++bit) ones[bit] += (word >> bit) & 1;
  }
  for (const double count : ones) {
    BOOST_TEST(std::abs(count - draws / 2.0) < 4.5 * std::sqrt(draws / 4.0));
  }
}

// Takes the first word of each of about 65,000 random streams whose names differ only in the step
// or only in the index. The pairs of words of neighbouring streams must be uniform.
BOOST_AUTO_TEST_CASE(neighbouring_streams_are_independent) {
  for (const bool by_step : {false, true}) {
    std::vector<double> pairs(256);
    std::uint32_t previous = 0;
    for (std::uint32_t i = 0; i <= 1u << 16; ++i) {
      const std::uint32_t now =
          (by_step ? Rng(5, Purpose::data, i, 0) : Rng(5, Purpose::data, 0, i)).next() >> 28;
      if (i > 0) pairs[previous * 16 + now] += 1;
      previous = now;
    }
    BOOST_TEST(chi_square_p(pairs) > 1e-3);
  }
}

BOOST_AUTO_TEST_CASE(below_is_uniform_for_small_bounds) {
  for (const std::uint32_t bound : {2u, 3u, 7u, 10u, 100u, 1000u}) {
    Rng rng(2, Purpose::test, bound);
    std::vector<double> counts(bound);
    for (std::uint32_t i = 0; i < 200 * bound; ++i) counts.at(rng.below(bound)) += 1;
    BOOST_TEST(chi_square_p(counts) > 1e-3);
  }
}

// Simple ways of mapping a word of 32 bits to a number below 3 * 2^30 are biased. The remainder of
// the word would make numbers in the first third twice as likely. The upper half of the product
// word * bound, without rejection, would make the multiples of three twice as likely.
BOOST_AUTO_TEST_CASE(below_is_uniform_for_bounds_that_bias_simpler_methods) {
  const std::uint32_t bound = 3u << 30;
  Rng rng(3, Purpose::test);
  std::vector<double> thirds(3);
  std::vector<double> remainders(3);
  for (int i = 0; i < 30'000; ++i) {
    const std::uint32_t value = rng.below(bound);
    BOOST_REQUIRE(value < bound);
    thirds[value >> 30] += 1;
    remainders[value % 3] += 1;
  }
  BOOST_TEST(chi_square_p(thirds) > 1e-3);
  BOOST_TEST(chi_square_p(remainders) > 1e-3);
}

BOOST_AUTO_TEST_CASE(below_one_is_zero_and_below_zero_is_refused) {
  Rng rng(4, Purpose::test);
  BOOST_TEST(rng.below(1) == 0u);
  BOOST_CHECK_THROW(rng.below(0), Error);
  BOOST_TEST(rng.below(~0u) < ~0u);
}

BOOST_AUTO_TEST_CASE(uniform_numbers_fill_the_unit_interval) {
  Rng rng(5, Purpose::test);
  std::vector<double> counts(64);
  for (int i = 0; i < 64'000; ++i) {
    const double value = rng.uniform();
    BOOST_REQUIRE(value >= 0);
    BOOST_REQUIRE(value < 1);
    counts[static_cast<std::size_t>(value * 64)] += 1;
  }
  BOOST_TEST(chi_square_p(counts) > 1e-3);
}

// The cumulative distribution function maps normal numbers to uniform numbers between 0 and 1. The
// test divides this range into 50 cells of equal size, which must be equally likely.
BOOST_AUTO_TEST_CASE(normal_numbers_are_normal) {
  const auto distribution = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  Rng rng(6, Purpose::test);
  std::vector<double> counts(50);
  for (int i = 0; i < 50'000; ++i) {
    counts[static_cast<std::size_t>(std::min(distribution(rng.normal()) * 50, 49.0))] += 1;
  }
  BOOST_TEST(chi_square_p(counts) > 1e-3);
}

BOOST_AUTO_TEST_CASE(chance_is_true_with_its_probability) {
  Rng rng(7, Purpose::test);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += rng.chance(0.02) ? 1 : 0;
  BOOST_TEST(std::abs(hits - 2000) < 4.5 * std::sqrt(100'000 * 0.02 * 0.98));
  BOOST_TEST(!rng.chance(0));
  BOOST_TEST(rng.chance(1));
}

BOOST_AUTO_TEST_CASE(all_orders_are_equally_likely_after_shuffling) {
  std::vector<double> counts(24);
  for (std::uint32_t i = 0; i < 24'000; ++i) {
    std::array<int, 4> order{0, 1, 2, 3};
    Rng(8, Purpose::test, 0, i).shuffle(order.begin(), order.end());
    std::array<int, 4> next{0, 1, 2, 3};
    std::size_t rank = 0;
    while (next != order && std::next_permutation(next.begin(), next.end())) ++rank;
    counts.at(rank) += 1;
  }
  BOOST_TEST(chi_square_p(counts) > 1e-3);
}

BOOST_AUTO_TEST_SUITE_END()
