#pragma once

#include <array>
#include <csignal>

namespace longhand::nn {

/// While a StopSignals exists, SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU only set a flag and do
/// not end the process. A second SIGINT or SIGTERM ends the process immediately if it arrives at
/// least half a second after the first. Within half a second, a second signal has no effect,
/// because a terminal, `timeout` and `mpirun` may send one request twice.
///
/// The other three signals may arrive many times: SIGPIPE for each line that is written to a closed
/// pipe, SIGXCPU in each second beyond the limit. Repeated signals of these three kinds have no
/// effect. A signal that was ignored before, as under nohup, is still ignored.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal that the process received while a StopSignals existed; 0 if there was none.
  /// The signal is not cleared automatically. Later work therefore stops too, and the exit status
  /// shows the signal.
  static int raised();
  /// Clears the signal. For callers that have handled the signal and continue.
  static void forget();

 private:
  static constexpr std::array<int, 5> signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace longhand::nn
