#include "nn/training/stop_signals.h"

#include <atomic>
#include <cstdint>
#include <ctime>

namespace longhand::nn {
namespace {

constexpr std::int64_t nanoseconds = 1'000'000'000;

std::atomic<int> first{0};
std::atomic<std::int64_t> first_request{0};  // time of the first SIGINT or SIGTERM
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a handler may use it");

std::int64_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * nanoseconds + time.tv_nsec;
}

extern "C" void on_stop_signal(int signal) {
  int none = 0;
  first.compare_exchange_strong(none, signal);
  if (signal != SIGINT && signal != SIGTERM) return;
  std::int64_t request = 0;
  if (first_request.compare_exchange_strong(request, now())) return;
  if (now() - request < nanoseconds / 2) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
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
void StopSignals::forget() {
  first = 0;
  first_request = 0;
}

}  // namespace longhand::nn
