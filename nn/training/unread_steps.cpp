#include "nn/training/unread_steps.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace longhand::nn {
namespace {

constexpr double most_together = 16;  // steps

/// Loss, accuracy and norm, from the numbers that the step left.
void complete(Step& step, Communicator& ranks) {
  const std::vector<double> numbers = step.numbers.to_doubles();
  const std::size_t count = step.shares.size();
  std::array<double, 2> sums{};  // loss, hits
  for (std::size_t i = 0; i < count; ++i) {
    sums[0] += step.shares[i] * numbers[i];
    sums[1] += step.shares[i] * numbers[count + i];
  }
  ranks.sum(sums);
  step.report.loss = sums[0];
  if (step.choices) step.report.accuracy = sums[1];
  step.report.gradient_norm = numbers.back();
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
