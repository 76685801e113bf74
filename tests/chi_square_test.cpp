#include "tests/chi_square.h"

#include <cmath>
#include <vector>
#include "tests/check.h"

#include "core/error.h"

BOOST_AUTO_TEST_SUITE(chi_square_test)

using namespace longhand;

// Quantiles from printed tables, each with its degrees of freedom and the probability of exceeding
// it: 3.841 (1, 0.05), 6.635 (1, 0.01), 18.307 (10, 0.05), 124.342 (100, 0.05).
BOOST_AUTO_TEST_CASE(probabilities_agree_with_published_tables) {
  const auto with_statistic = [](std::size_t degrees, double statistic) {
    std::vector<double> counts(degrees + 1, 1000);
    const double shift = std::sqrt(statistic * 1000 / 2);
    counts[0] += shift;
    counts[1] -= shift;
    return chi_square_p(counts);
  };
  BOOST_TEST(std::abs(with_statistic(1, 3.841) - 0.05) < 1e-4);
  BOOST_TEST(std::abs(with_statistic(1, 6.635) - 0.01) < 1e-4);
  BOOST_TEST(std::abs(with_statistic(10, 18.307) - 0.05) < 1e-4);
  BOOST_TEST(std::abs(with_statistic(100, 124.342) - 0.05) < 1e-4);
  BOOST_TEST(std::abs(with_statistic(10, 9.342) - 0.5) < 1e-4);
}

BOOST_AUTO_TEST_CASE(wrong_proportions_are_detected) {
  const std::vector<double> counts{2000, 1000, 1000};
  BOOST_TEST(chi_square_p(counts) < 1e-50);
  BOOST_TEST(chi_square_p(counts, std::vector<double>{2, 1, 1}) == 1.0);
  BOOST_CHECK_THROW(chi_square_p(std::vector<double>{1, 1}), Error);
}

BOOST_AUTO_TEST_SUITE_END()
