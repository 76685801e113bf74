#include "nn/training/stop_signals.h"

#include <atomic>

namespace longhand::nn {
namespace {

std::atomic<int> first{0};
static_assert(std::atomic<int>::is_always_lock_free, "a handler may use it");

extern "C" void on_stop_signal(int signal) {
  int none = 0;
  first.compare_exchange_strong(none, signal);
  if (signal == SIGINT || signal == SIGTERM) std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(signals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < signals.size(); ++i) {
    ::sigaction(signals[i], &before_[i], nullptr);
  }
}

int StopSignals::raised() { return first; }
void StopSignals::forget() { first = 0; }

}  // namespace longhand::nn
