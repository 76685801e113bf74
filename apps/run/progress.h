#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nn/training/trainer.h"

namespace longhand::app {

/// The contents of a line of progress.
struct ProgressState {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> accuracy = {};
  double seconds = 0;                                   // per step
  double tokens = 0;                                    // per step
  std::optional<nn::StepReport::Slowest> slowest = {};  // if there are several ranks
  std::optional<double> peak = {};                      // share of the machine's peak
  std::uint64_t memory = 0;                             // bytes, maximum so far
};

/// The line, at most this wide, with a bar if there is room. The least important parts are dropped
/// first. With columns 0, all parts without a bar.
std::string progress_line(const ProgressState& state, std::size_t columns);

/// Shows the progress of a run on standard error: one line that is overwritten on a terminal,
/// otherwise a line from time to time.
class Progress {
 public:
  /// `peak`: operations per second of the machine; 0 if unknown.
  Progress(std::int64_t steps, bool quiet, double peak);

  /// `operations`: of the step.
  void show(const nn::StepReport& report, double operations);
  void say(std::string_view text);  // prints one or several lines

 private:
  std::int64_t steps_;
  double peak_;
  bool quiet_, terminal_, open_ = false, shown_ = false;
  double mean_seconds_ = 0, since_ = 0;
};

}  // namespace longhand::app
