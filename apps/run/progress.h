#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nn/training/trainer.h"

namespace longhand::app {

/// What a line of progress tells.
struct ProgressState {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> accuracy = {};
  double seconds = 0;                                   // of a step
  double tokens = 0;                                    // of a step
  std::optional<nn::StepReport::Slowest> slowest = {};  // of several ranks
  std::optional<double> peak = {};                      // the share of what the machine can do
  std::uint64_t memory = 0;                             // bytes, the most in use so far
};

/// The line, no wider than so many columns, with a bar where there is room: what matters least is
/// left out first. Columns 0: all of it, without a bar.
std::string progress_line(const ProgressState& state, std::size_t columns);

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
