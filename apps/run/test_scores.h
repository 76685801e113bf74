#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/evaluation.h"
#include "core/json.h"

namespace longhand::app {

/// Throws an Error if the model's table of positions is too short for the longest sample of the
/// task.
void require_readable(const nn::DecoderConfig& model, const tasks::Task& task);
/// The reason why a model cannot read the samples of a task. Empty if it can.
std::string unreadable(const nn::DecoderConfig& model, const tasks::Task& task);

/// Scores a model on all distributions of its task. If a distribution has samples that are too long
/// for the model, the distribution is skipped and its name is reported.
class TestScores {
 public:
  /// The ranks evaluate together, so each of them must call TestScores::of().
  explicit TestScores(const Config& config, nn::Communicator& ranks = nn::single_rank());

  /// The results of an evaluation, as a line of metrics.jsonl. Its members are "step"; the value of
  /// each metric, named "distribution/metric"; "intervals", the 95% intervals of the metrics that
  /// are shares, such as the share of correct tokens; and "too_long", the skipped distributions.
  /// `say` is called with a text for each result.
  Json of(
      nn::Decoder& model, std::int64_t step,
      const std::function<void(const std::string&)>& say = [](const std::string&) {}) const;
  /// The number by which checkpoints are compared, where higher is better. It is the sum of the
  /// main metric over the distributions that count for the comparison.
  double total(const Json& scores) const;
  bool wanted() const { return options_.samples > 0; }

 private:
  struct Test {
    std::string name;
    std::unique_ptr<tasks::Task> task;
    bool compared;
  };
  std::vector<Test> tests_;
  EvaluationOptions options_;
};

}  // namespace longhand::app
