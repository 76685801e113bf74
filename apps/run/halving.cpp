#include "apps/run/halving.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace longhand::app {

std::vector<HalvingStage> halving_stages(std::size_t settings, std::int64_t eta,
                                         std::int64_t steps) {
  LONGHAND_CHECK(eta >= 2, "halving: expected a factor of at least 2, got ", eta);
  const auto divisor = static_cast<std::size_t>(eta);
  std::vector<HalvingStage> stages{{settings, 0}};
  while (stages.back().settings > 1) {
    stages.push_back({(stages.back().settings + divisor - 1) / divisor, 0});
  }
  std::int64_t share = steps;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage, share /= eta) {
    stage->steps = share;
  }
  LONGHAND_CHECK(stages.front().steps >= 1, "halving: ", steps, " steps are too few for ",
                 stages.size(), " stages");
  return stages;
}

std::vector<std::size_t> best_of(const std::vector<HalvingScore>& scores, bool less_is_better,
                                 std::size_t many) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t i, std::size_t j) {
    const HalvingScore &a = scores[i], &b = scores[j];
    if (a.score != b.score) return less_is_better ? a.score < b.score : a.score > b.score;
    return a.loss < b.loss;
  });
  order.resize(std::min(many, order.size()));
  return order;
}

}  // namespace longhand::app
