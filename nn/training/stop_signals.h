#pragma once

#include <array>
#include <csignal>

namespace longhand::nn {

/// While a StopSignals exists, SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU only set a flag instead
/// of ending the process. A second SIGINT or SIGTERM ends the process immediately. The other three
/// signals may arrive many times: SIGPIPE for each line written to a closed pipe, SIGXCPU in each
/// second beyond the limit. Their repetitions have no effect. A signal that was ignored before, as
/// under nohup, stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal that the process received while a StopSignals existed; 0 if there was none.
  /// It is not cleared automatically, so later work stops too and the exit status shows the signal.
  static int raised();
  /// Clears the signal. For callers that have handled it and continue.
  static void forget();

 private:
  static constexpr std::array<int, 5> signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace longhand::nn
