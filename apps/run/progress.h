#pragma once

#include <cstdint>
#include <string_view>

#include "nn/training/trainer.h"

namespace longhand::app {

/// Tells on standard error how far a run is: one line written over on a terminal, a line now and
/// then elsewhere.
class Progress {
 public:
  /// peak: operations a second the machine can do; 0 where that is not known.
  Progress(std::int64_t steps, bool quiet, double peak);

  /// operations: of the step.
  void show(const nn::StepReport& report, double operations);
  void say(std::string_view text);  // one line or several

 private:
  std::int64_t steps_;
  double peak_;
  bool quiet_, terminal_, open_ = false, shown_ = false;
  double mean_seconds_ = 0, since_ = 0;
};

}  // namespace longhand::app
