#include "nn/models/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.h"

namespace longhand::nn {
namespace {

struct Candidate {
  std::int32_t token;
  double score;  // first the logit, later the unnormalized probability
};

bool likelier(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.token < b.token;
}

void check(const Sampling& s) {
  const auto require = [](bool holds, const char* setting, const char* expected, double value) {
    LONGHAND_CHECK(holds, "sampling: ", setting, ": expected ", expected, ", got ", value);
  };
  require(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0, "repetition_penalty",
          "a number above 0", s.repetition_penalty);
  require(std::isfinite(s.temperature) && s.temperature >= 0, "temperature",
          "a number of at least 0", s.temperature);
  require(s.top_p >= 0 && s.top_p <= 1, "top_p", "0 to 1", s.top_p);
  require(s.min_p >= 0 && s.min_p <= 1, "min_p", "0 to 1", s.min_p);
  LONGHAND_CHECK(s.top_k >= 0, "sampling: top_k: expected at least 0, got ", s.top_k);
}

/// Keeps the smallest set of most likely candidates whose probabilities add up to at least p.
void keep_nucleus(std::vector<Candidate>& all, double p) {
  double whole = 0;
  for (const Candidate& c : all) whole += c.score;
  // Removes candidates that cannot be kept, so that fewer must be sorted. All candidates with
  // scores below `least` together have less than 1 - p of the total score. The other candidates
  // therefore reach the share p without them. In a large vocabulary, most tokens are removed here.
  const double least = whole * (1 - p) / static_cast<double>(all.size());
  std::erase_if(all, [&](const Candidate& c) { return c.score < least; });
  std::ranges::sort(all, likelier);
  double sum = 0;
  std::size_t kept = 0;
  while (kept < all.size() && sum < p * whole) sum += all[kept++].score;
  all.resize(std::max<std::size_t>(1, kept));
}

}  // namespace

Choice choose(std::span<const float> logits, std::span<const std::int32_t> before,
              const Sampling& sampling, Rng& rng) {
  check(sampling);
  LONGHAND_CHECK(!logits.empty(), "sampling: expected logits, got none");
  double highest = -std::numeric_limits<double>::infinity();
  for (const double logit : logits) highest = std::max(highest, logit);
  LONGHAND_CHECK(std::isfinite(highest), "sampling: expected finite logits, got ", highest);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - highest);
  LONGHAND_CHECK(std::isfinite(sum), "sampling: expected finite logits, got ", sum);
  const double log_sum = highest + std::log(sum);
  const auto chosen = [&](std::int32_t token) {
    return Choice{token, logits[static_cast<std::size_t>(token)] - log_sum};
  };
  if (sampling.greedy()) {
    return chosen(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
  }

  std::vector<Candidate> all(logits.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = {static_cast<std::int32_t>(i), logits[i]};
  if (sampling.repetition_penalty != 1) {
    for (const std::int32_t token : before) {
      LONGHAND_CHECK(token >= 0 && static_cast<std::size_t>(token) < all.size(),
                     "sampling: expected tokens from 0 to ", all.size() - 1, ", got ", token);
      const double logit = logits[static_cast<std::size_t>(token)];
      const double penalty = sampling.repetition_penalty;
      all[static_cast<std::size_t>(token)].score = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  if (sampling.temperature == 0) return chosen(std::ranges::min_element(all, likelier)->token);

  const auto kept = static_cast<std::size_t>(sampling.top_k);
  if (kept > 0 && kept < all.size()) {
    std::ranges::nth_element(all, all.begin() + static_cast<std::ptrdiff_t>(kept) - 1, likelier);
    all.resize(kept);
  }
  const double top = std::ranges::min_element(all, likelier)->score;
  for (Candidate& c : all) c.score = std::exp((c.score - top) / sampling.temperature);
  if (sampling.top_p < 1) keep_nucleus(all, sampling.top_p);
  if (sampling.min_p > 0) {  // the most likely candidate has score 1
    std::erase_if(all, [&](const Candidate& c) { return c.score < sampling.min_p; });
  }
  // Sorts the candidates by token, so that the choice does not depend on the order in which top_k
  // and top_p left them.
  std::ranges::sort(all, {}, &Candidate::token);
  double whole = 0;
  for (const Candidate& c : all) whole += c.score;
  double left = rng.uniform() * whole;
  for (const Candidate& c : all) {
    left -= c.score;
    if (left < 0) return chosen(c.token);
  }
  // Because of rounding, `left` may still be at least 0 after the last candidate. In this case, the
  // most likely candidate is chosen.
  return chosen(std::ranges::min_element(all, likelier)->token);
}

}  // namespace longhand::nn
