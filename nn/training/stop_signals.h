#pragma once

#include <array>
#include <csignal>

namespace longhand::nn {

/// While an object of this class lives, the signals that ask a program to end only set a flag:
/// SIGINT, SIGTERM, SIGHUP, SIGPIPE and SIGXCPU. A second SIGINT or SIGTERM ends the process at
/// once. The other three may arrive many times (SIGPIPE at each line written to a closed pipe,
/// SIGXCPU at each second past the limit), so their repeats do nothing. A signal that was ignored
/// before, as under nohup, stays ignored.
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
