#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/evaluation.h"
#include "core/json.h"

namespace longhand::app {

/// Refused where the model's table of positions is too short for the task's longest sample.
void require_readable(const nn::DecoderConfig& model, const tasks::Task& task);
/// Why a model cannot read a task's samples; empty: it can.
std::string unreadable(const nn::DecoderConfig& model, const tasks::Task& task);

/// Scores a model on its task's distributions. Those with samples longer than it can read are
/// skipped, by name.
class TestScores {
 public:
  /// ranks: that score it together, all calling of().
  explicit TestScores(const Config& config, nn::Communicator& ranks = nn::alone());

  /// "distribution/metric" to value; "intervals", the shares' 95% intervals; and "too_long", the
  /// distributions that were skipped. `say` is told each in words.
  Json of(nn::Decoder& model, const std::function<void(const std::string&)>& say) const;
  /// The number by which checkpoints are compared, more being better: the main metric, added up
  /// over the distributions that count.
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
