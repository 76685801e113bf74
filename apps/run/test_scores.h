#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/evaluation.h"
#include "core/json.h"

namespace longhand::app {

/// Throws an Error if the model's table of positions is too short for the task's longest sample.
void require_readable(const nn::DecoderConfig& model, const tasks::Task& task);
/// The reason why a model cannot read a task's samples; empty if it can.
std::string unreadable(const nn::DecoderConfig& model, const tasks::Task& task);

/// Scores a model on all distributions of its task. A distribution with samples longer than the
/// model can read is skipped, and its name is reported.
class TestScores {
 public:
  /// `ranks` evaluate together, so all of them must call of().
  explicit TestScores(const Config& config, nn::Communicator& ranks = nn::alone());

  /// The results of an evaluation: "distribution/metric" with its value; "intervals", the 95%
  /// intervals of shares; "too_long", the skipped distributions. `say` is called with a text for
  /// each result.
  Json of(nn::Decoder& model, const std::function<void(const std::string&)>& say) const;
  /// The number by which checkpoints are compared: the sum of the main metric over the
  /// distributions that count for the comparison. Higher is better.
  double total(const Json& scores) const;
  bool wanted() const { return options_.samples > 0; }

 private:
  struct Test {
    std::string name, title;
    std::unique_ptr<tasks::Task> task;
    bool compared;
  };
  std::vector<Test> tests_;
  EvaluationOptions options_;
};

}  // namespace longhand::app
