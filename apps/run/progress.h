#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nn/training/trainer.h"

namespace longhand::app {

/// The values shown in a progress line.
struct ProgressState {
  std::int64_t step = 0, steps = 0;
  double loss = 0;
  std::optional<double> accuracy = {};
  double seconds = 0;                                   // seconds per step
  double tokens = 0;                                    // tokens per step
  std::optional<nn::StepReport::Slowest> slowest = {};  // the slowest rank, if there are several
  std::optional<double> peak = {};                      // speed as a share of the machine's peak
  std::uint64_t memory = 0;                             // peak memory in bytes
};

/// The progress line, cut to `columns` characters. It has a bar if there is room, and the least
/// important parts are dropped first. If `columns` is 0, the line has all parts and no bar.
std::string progress_line(const ProgressState& state, std::size_t columns);

/// Prints the progress of a run to standard error. On a terminal, one line is overwritten.
/// Otherwise a new line is printed from time to time.
class Progress {
 public:
  /// `peak` is the machine's number of operations per second, or 0 if it is unknown.
  Progress(std::int64_t steps, bool quiet, double peak);

  /// `operations` is the number of operations of the step.
  void show(const nn::StepReport& report, double operations);
  void say(std::string_view text);  // prints one or several lines

 private:
  std::int64_t steps_;
  double peak_;
  bool quiet_, terminal_, open_ = false, shown_ = false;
  double mean_seconds_ = 0, since_ = 0;
};

}  // namespace longhand::app
