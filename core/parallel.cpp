#include "core/parallel.h"

#include <sched.h>

#include <algorithm>

#include "core/error.h"

namespace longhand {
namespace {

/// How often a waiting thread looks before it sleeps: some tens of microseconds, so that the gaps
/// between the operations of a training step cost no system call.
constexpr int spins = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  LONGHAND_CHECK(threads >= 0 && threads <= 1024, "threads: expected 0 (all cores) to 1024, got ",
                 threads);
  const int total = threads == 0 ? usable_cores() : threads;
  workers_.reserve(static_cast<std::size_t>(total - 1));
  for (int i = 1; i < total; ++i) workers_.emplace_back([this, i] { work(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    ++generation_;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t chunks, FunctionRef<void(std::int64_t, int)> body) {
  if (chunks <= 0) return;
  if (workers_.empty() || chunks == 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk, 0);
    return;
  }
  error_ = nullptr;
  body_ = &body;
  chunks_ = chunks;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex_);  // a worker about to sleep either sees this or is woken
    generation_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  take_chunks(0);
  for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < spins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::take_chunks(int worker) {
  for (;;) {
    const std::int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= chunks_) return;
    try {
      (*body_)(chunk, worker);
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      next_.store(chunks_, std::memory_order_relaxed);
    }
  }
}

void ThreadPool::work(int worker) {
  std::uint64_t seen = 0;
  for (;;) {
    for (int spin = 0; spin < spins && generation_.load(std::memory_order_acquire) == seen;
         ++spin) {
      pause();
    }
    if (generation_.load(std::memory_order_acquire) == seen) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_) return;
    take_chunks(worker);
    busy_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace longhand
