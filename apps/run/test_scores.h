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
/// Why a model cannot read a task's samples; empty if it can.
std::string unreadable(const nn::DecoderConfig& model, const tasks::Task& task);

/// Scores a model on the distributions of its task. Distributions with longer samples than it can
/// read are skipped, by name.
class TestScores {
 public:
  /// `ranks` score together; all of them call of().
  explicit TestScores(const Config& config, nn::Communicator& ranks = nn::alone());

  /// "distribution/metric" with its value; "intervals", the 95% intervals of shares; and
  /// "too_long", the skipped distributions. `say` is called with each as text.
  Json of(nn::Decoder& model, const std::function<void(const std::string&)>& say) const;
  /// The number by which checkpoints are compared, higher is better: the sum of the main metric
  /// over compared distributions.
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
