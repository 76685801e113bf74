#include "nn/training/stop_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(stop_signals_test)

using longhand::nn::StopSignals;

BOOST_AUTO_TEST_CASE(a_repeated_request_ends_the_process_only_after_half_a_second) {
  const pid_t child = ::fork();
  if (child == 0) {
    // A signal may be ignored here, for example SIGINT if a script runs the tests in the
    // background.
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    const StopSignals signals;
    std::raise(SIGINT);
    std::raise(SIGINT);
    if (StopSignals::raised() != SIGINT) ::_exit(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    std::raise(SIGTERM);
    ::_exit(2);
  }
  int status = 0;
  BOOST_TEST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST_REQUIRE(WIFSIGNALED(status));
  BOOST_TEST(WTERMSIG(status) == SIGTERM);
}

BOOST_AUTO_TEST_SUITE_END()
