#pragma once

#include <array>
#include <csignal>

namespace longhand::nn {

/// While it stands, the signals that ask a program to end set a flag instead: SIGINT, SIGTERM,
/// SIGHUP, SIGPIPE and SIGXCPU. A second SIGINT or SIGTERM ends the process at once; the others
/// come in numbers by their nature (a line to a closed pipe, a second past the limit) and change
/// nothing more. A signal that was ignored before, as nohup has it, stays so.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal of the process, whichever of these objects saw it; 0: none. It stays, so that
  /// work after it stops too and the process's status tells it.
  static int raised();
  /// Forgets it, for a caller that has handled it and goes on.
  static void forget();

 private:
  static constexpr std::array<int, 5> signals{SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
};

}  // namespace longhand::nn
