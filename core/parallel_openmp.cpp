#include <omp.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/parallel.h"

namespace longhand {
namespace {

/// A child made by fork() has only the thread that called fork(). OpenMP would wait forever for the
/// threads that it started in the parent, so such a child computes on one thread.
std::atomic<bool> region_was_entered{false};
std::atomic<bool> threads_are_missing{false};

void watch_forks() {
  static const int watched =
      pthread_atfork(nullptr, nullptr, [] { threads_are_missing = region_was_entered.load(); });
  static_cast<void>(watched);
}

/// Checks that `count` threads can exist at once: starts and joins them. If libgomp, GCC's OpenMP,
/// cannot start a thread, it ends the process. After this check it can usually start them.
void check_that_threads_start(int count, const auto& not_started) {
  std::vector<std::thread> started;
  std::mutex gate;
  std::unique_lock closed(gate);  // no thread ends before all have been started
  const auto join = [&] {
    closed.unlock();
    for (auto& thread : started) thread.join();
  };
  try {
    started.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) started.emplace_back([&] { const std::lock_guard pass(gate); });
  } catch (const std::system_error& error) {
    join();
    not_started(started.size() + 1, error);
  }
  join();
}

}  // namespace

struct ThreadPool::Team {};  // empty, because OpenMP owns the threads

int ThreadPool::default_count() { return omp_get_max_threads(); }

ThreadPool::ThreadPool(int threads) : threads_(count_of(threads)) {
  static std::atomic<int> known_to_start{1};
  if (threads_ > known_to_start) {
    check_that_threads_start(threads_ - 1, [&](std::size_t started, const auto& error) {
      fail_to_start(threads_, started, error);
    });
    known_to_start = threads_;
  }
  watch_forks();
}

ThreadPool::~ThreadPool() = default;

std::string_view ThreadPool::implementation() { return "OpenMP"; }

void ThreadPool::run(std::int64_t chunks, FunctionRef<void(std::int64_t, int)> body) {
  // Inside a parallel region of the calling program, the other cores already have work. All chunks
  // then run on the calling thread.
  if (threads_ == 1 || chunks <= 1 || omp_in_parallel() != 0 || threads_are_missing) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk, 0);
    return;
  }
  region_was_entered = true;
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
#pragma omp parallel num_threads(threads_)
  {
    const int worker = omp_get_thread_num();
    for (std::int64_t chunk; !failed && (chunk = next.fetch_add(1)) < chunks;) {
      try {
        body(chunk, worker);
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
}

void limit_polling(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  // 4000 polls take some tens of microseconds, so that no thread sleeps between the operations of a
  // training step.
  if (::setenv("GOMP_SPINCOUNT", "4000", 0) != 0) return;
  ::execv("/proc/self/exe", arguments);
  // execv() returns only if it fails, for example because /proc is missing. The program then
  // continues, and idle threads poll as long as OpenMP's default allows.
}

}  // namespace longhand
