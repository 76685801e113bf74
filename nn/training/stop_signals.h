#pragma once

#include <array>
#include <csignal>

namespace longhand::nn {

/// While a StopSignals exists, the signals that request the end of a program only set a flag:
/// SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU. A second SIGINT or SIGTERM ends the process
/// immediately. The other three signals may arrive many times (SIGPIPE for each line written to a
/// closed pipe, SIGXCPU for each second beyond the limit), so repetitions have no effect. A signal
/// that was ignored before, as under nohup, stays ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal that the process received while any StopSignals existed; 0 if there was none.
  /// It is kept, so that later work stops too and the exit status shows it.
  static int raised();
  /// Clears the signal, for a caller that has handled it and continues.
  static void forget();

 private:
  static constexpr std::array<int, 5> signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace longhand::nn
