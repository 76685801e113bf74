#include "nn/models/sampling.h"

#include <cmath>
#include <map>
#include <vector>

#include "core/error.h"
#include "tests/check.h"
#include "tests/chi_square.h"

BOOST_AUTO_TEST_SUITE(sampling_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

const std::vector<float> logits{1.0f, 3.0f, 2.0f, -1.0f, 3.0f, 0.0f};

std::map<std::int32_t, int> counts(const Sampling& sampling, int draws = 4000,
                                   const std::vector<std::int32_t>& before = {}) {
  std::map<std::int32_t, int> times;
  for (int i = 0; i < draws; ++i) {
    Rng rng(1, Purpose::test, static_cast<std::uint64_t>(i));
    ++times[choose(logits, before, sampling, rng).token];
  }
  return times;
}

}  // namespace

BOOST_AUTO_TEST_CASE(temperature_0_selects_the_most_probable_token_of_lowest_id) {
  Rng rng(1, Purpose::test);
  const Choice choice = choose(logits, {}, {}, rng);
  BOOST_TEST(choice.token == 1);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  BOOST_TEST(std::abs(choice.log_probability - (3 - std::log(sum))) < 1e-12);
}

BOOST_AUTO_TEST_CASE(tokens_are_sampled_with_their_probability) {
  for (const double temperature : {0.7, 1.0, 2.0}) {
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit / temperature);
    const int draws = 4000;
    auto times = counts({.temperature = temperature}, draws);
    double square = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected = draws * std::exp(logits[i] / temperature) / sum;
      const double off = times[static_cast<std::int32_t>(i)] - expected;
      square += off * off / expected;
    }
    BOOST_TEST(square < 20.5);  // the 0.999 quantile of chi-square with 5 degrees of freedom
  }
}

BOOST_AUTO_TEST_CASE(improbable_tokens_are_excluded) {
  const auto tokens = [](const Sampling& sampling) {
    std::vector<std::int32_t> all;
    for (const auto& [token, times] : counts(sampling)) all.push_back(token);
    return all;
  };
  BOOST_TEST((tokens({.temperature = 1, .top_k = 3}) == std::vector{1, 2, 4}));
  BOOST_TEST((tokens({.temperature = 1, .top_k = 1}) == std::vector{1}));
  // The exponentials of the logits, in descending order, are e^3, e^3, e^2, e, 1, 1/e. The
  // probabilities are 0.389 for each of the first two tokens, then 0.143, 0.053, 0.019, 0.007.
  BOOST_TEST((tokens({.temperature = 1, .top_p = 0.3}) == std::vector{1}));
  BOOST_TEST((tokens({.temperature = 1, .top_p = 0.7}) == std::vector{1, 4}));
  BOOST_TEST((tokens({.temperature = 1, .top_p = 0.8}) == std::vector{1, 2, 4}));
  BOOST_TEST((tokens({.temperature = 1, .top_p = 0}) == std::vector{1}));
  BOOST_TEST((tokens({.temperature = 1, .min_p = 0.3}) == std::vector{1, 2, 4}));
  BOOST_TEST((tokens({.temperature = 1, .min_p = 1}) == std::vector{1, 4}));
}

BOOST_AUTO_TEST_CASE(a_penalty_applies_to_earlier_tokens) {
  Rng rng(1, Purpose::test);
  const std::vector<std::int32_t> before{1, 4, 1};
  BOOST_TEST(choose(logits, before, {.repetition_penalty = 2}, rng).token == 2);
  BOOST_TEST(choose(logits, std::vector<std::int32_t>{1}, {.repetition_penalty = 2}, rng).token ==
             4);
  // The penalty makes a negative logit lower, not higher.
  const std::vector<float> low{-1.0f, -1.5f};
  BOOST_TEST(choose(low, std::vector<std::int32_t>{0}, {.repetition_penalty = 2}, rng).token == 1);
}

BOOST_AUTO_TEST_CASE(invalid_logits_are_refused) {
  Rng rng(1, Purpose::test);
  BOOST_CHECK_THROW(choose({}, {}, {}, rng), Error);
  BOOST_CHECK_THROW(choose(std::vector<float>{-INFINITY, -INFINITY}, {}, {}, rng), Error);
}

BOOST_AUTO_TEST_SUITE_END()
