#pragma once

#include <cstdint>
#include <string>

#include "nn/trainer.h"

namespace longhand::app {

/// Tells on standard error how far a run is: one line written over on a terminal, a line now and
/// then elsewhere.
class Progress {
 public:
  Progress(std::int64_t steps, bool quiet);

  void show(const nn::StepReport& report);
  void say(const std::string& line);

 private:
  std::int64_t steps_;
  bool quiet_, terminal_, open_ = false, shown_ = false;
  double mean_seconds_ = 0, since_ = 0;
};

}  // namespace longhand::app
