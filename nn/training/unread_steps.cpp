#include "nn/training/unread_steps.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "nn/ranks/tree.h"

namespace longhand::nn {
namespace {

constexpr double most_together = 16;  // maximum number of steps whose losses are read at once

/// Computes loss, accuracy and norm from the numbers of the step.
void complete(Step& step, Communicator& ranks) {
  const std::vector<double> numbers = step.numbers.to_doubles();
  const std::size_t count = step.shares.size();
  const auto parts = static_cast<std::size_t>(step.cut.parts);
  // The loss of each part, the share of right predictions of each part, 1 if all batches have such
  // a share, and the seconds that this rank computed.
  std::vector<double> mine(2 * parts + 2);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t part = step.cut.part_of(step.places[i]);
    mine[part] += step.shares[i] * numbers[i];
    mine[parts + part] += step.shares[i] * numbers[count + i];
  }
  mine[2 * parts] = step.choices ? 1 : 0;
  mine[2 * parts + 1] = step.own_seconds;
  const std::vector<double> all = ranks.gather(std::span<const double>(mine));
  std::vector<double> losses, hits;
  StepReport::Slowest slowest;
  bool choices = true;
  for (std::size_t rank = 0; rank * mine.size() < all.size(); ++rank) {
    const std::span<const double> its = std::span(all).subspan(rank * mine.size(), mine.size());
    losses.insert(losses.end(), its.begin(), its.begin() + step.cut.parts);
    hits.insert(hits.end(), its.begin() + step.cut.parts, its.begin() + 2 * step.cut.parts);
    choices = choices && its[2 * parts] != 0;
    const double seconds = its[2 * parts + 1];
    if (seconds > slowest.seconds) slowest = {static_cast<int>(rank), seconds};
  }
  step.report.loss = tree_sum(losses);
  if (choices) step.report.accuracy = tree_sum(hits);
  step.report.gradient_norm = numbers.back();
  if (ranks.size() > 1) step.report.slowest = slowest;
}

}  // namespace

std::vector<Step> UnreadSteps::read(Communicator& ranks) {
  std::vector<Step> steps = std::exchange(steps_, {});
  if (steps.empty()) return steps;
  for (Step& step : steps) complete(step, ranks);
  const auto count = static_cast<double>(steps.size());
  const double seconds = steps.front().seconds() / count;
  double waited = 0;
  for (const Step& step : steps) waited += step.report.waited / count;
  for (Step& step : steps) {
    step.report.seconds = seconds;
    step.report.waited = waited;
  }
  together_ = static_cast<std::size_t>(std::clamp(seconds_ / seconds, 1.0, most_together));
  return steps;
}

bool is_finite(const Step& step) {
  return std::isfinite(step.report.loss) && std::isfinite(step.report.gradient_norm);
}

}  // namespace longhand::nn
