#include <csignal>

#include "nn/trainer.h"

namespace longhand::nn {
namespace {

volatile std::sig_atomic_t raised_flag = 0;

extern "C" void on_stop_signal(int signal) {
  raised_flag = 1;
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() {
  raised_flag = 0;
  std::signal(SIGINT, on_stop_signal);
  std::signal(SIGTERM, on_stop_signal);
}

StopSignals::~StopSignals() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool StopSignals::raised() { return raised_flag != 0; }

}  // namespace longhand::nn
