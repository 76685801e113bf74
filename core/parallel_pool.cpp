#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"

namespace longhand {
namespace {

/// Number of times that a waiting thread polls before it sleeps. This takes some tens of
/// microseconds, so that no system call is needed between the operations of a training step.
constexpr int spins = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Keeps the calling thread off a given core. Linux often wakes a worker on the core of the thread
/// that woke it. The worker would then wait until that thread pauses, while other cores are idle.
class ElsewhereThan {
 public:
  ElsewhereThan() { known_ = sched_getaffinity(0, sizeof(all_), &all_) == 0; }

  void operator()(int core) {
    if (!known_ || core == avoided_ || core < 0 || core >= CPU_SETSIZE) return;
    cpu_set_t others = all_;
    CPU_CLR(static_cast<unsigned>(core), &others);
    if (CPU_COUNT(&others) == 0) return;
    if (sched_setaffinity(0, sizeof(others), &others) == 0) avoided_ = core;
  }

 private:
  cpu_set_t all_;
  bool known_ = false;
  int avoided_ = -1;
};

}  // namespace

/// The threads of a pool besides the calling thread. An idle thread first polls for work and then
/// sleeps.
struct ThreadPool::Team {
  explicit Team(int threads);
  ~Team() { join(); }

  using Body = FunctionRef<void(std::int64_t, int)>;
  void run(std::int64_t chunks, Body body);

 private:
  void work(int worker);
  void join();
  void take_chunks(std::uint64_t job, int worker);

  std::vector<std::thread> workers_;
  // True if workers avoid the caller's core. False if there are fewer cores than threads.
  bool keep_apart_ = false;
  std::atomic<int> caller_core_{-1};
  std::mutex mutex_;
  std::condition_variable wake_;
  /// The upper half is the number of the job, which is one call of run(). The lower half is the
  /// next chunk of this job. A thread takes a chunk by incrementing the ticket with
  /// compare-and-exchange, so it cannot take a chunk of a finished job. Between jobs the lower half
  /// is `closed`. Only then are body_ and chunks_ changed.
  std::atomic<std::uint64_t> ticket_{closed};
  static constexpr std::uint64_t closed = 0xffffffffu;
  std::atomic<const Body*> body_{nullptr};
  std::atomic<std::uint64_t> chunks_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::exception_ptr error_;
};

int ThreadPool::default_count() { return usable_cores(); }

ThreadPool::ThreadPool(int threads)
    : threads_(count_of(threads)), team_(std::make_unique<Team>(threads_)) {}

ThreadPool::~ThreadPool() = default;

std::string_view ThreadPool::implementation() { return "pool"; }

void ThreadPool::run(std::int64_t chunks, FunctionRef<void(std::int64_t, int)> body) {
  team_->run(chunks, body);
}

ThreadPool::Team::Team(int threads) {
  keep_apart_ = threads <= usable_cores();
  caller_core_ = sched_getcpu();
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& error) {
    const std::size_t started = workers_.size() + 1;
    join();
    fail_to_start(threads, started, error);
  }
}

void ThreadPool::Team::join() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::Team::run(std::int64_t chunks, Body body) {
  if (chunks <= 0) return;
  if (workers_.empty() || chunks == 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk, 0);
    return;
  }
  const auto count = static_cast<std::uint64_t>(chunks);
  LONGHAND_CHECK(count < closed, "threads: expected at most ", closed - 1,
                 " chunks of parallel work, got ", chunks);
  const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 32) + 1;
  error_ = nullptr;
  failed_.store(false, std::memory_order_relaxed);
  body_.store(&body, std::memory_order_relaxed);
  chunks_.store(count, std::memory_order_relaxed);
  caller_core_.store(sched_getcpu(), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  {
    // The lock prevents a lost wake-up: a worker that is about to sleep either reads the new job or
    // is woken.
    const std::lock_guard lock(mutex_);
    ticket_.store(job << 32, std::memory_order_release);
  }
  wake_.notify_all();
  take_chunks(job, 0);
  // Each thread finishes the chunks that it took. Workers that did not wake up in time have no
  // chunks, so the caller does not wait for them.
  for (int spin = 0; done_.load(std::memory_order_acquire) != count; ++spin) {
    if (spin < spins) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
  ticket_.store(job << 32 | closed, std::memory_order_release);
  if (error_) std::rethrow_exception(error_);
}

void ThreadPool::Team::take_chunks(std::uint64_t job, int worker) {
  for (;;) {
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    const std::uint64_t chunk = ticket & closed;
    if (ticket >> 32 != job || chunk >= chunks_.load(std::memory_order_relaxed)) return;
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
    if (!failed_.load(std::memory_order_relaxed)) {
      try {
        (*body_.load(std::memory_order_relaxed))(static_cast<std::int64_t>(chunk), worker);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        failed_.store(true, std::memory_order_relaxed);
      }
    }
    done_.fetch_add(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::Team::work(int worker) {
  std::uint64_t seen = 0;
  ElsewhereThan elsewhere_than;
  const auto step_aside = [&] {
    if (keep_apart_) elsewhere_than(caller_core_.load(std::memory_order_relaxed));
  };
  const auto news = [&] { return stop_ || ticket_.load(std::memory_order_acquire) >> 32 != seen; };
  step_aside();
  for (;;) {
    for (int spin = 0; spin < spins && !news(); ++spin) pause();
    if (!news()) {
      step_aside();
      std::unique_lock lock(mutex_);
      wake_.wait(lock, news);
      lock.unlock();
      step_aside();  // leave the caller's core, which may have changed while this worker slept
    }
    if (stop_) return;
    seen = ticket_.load(std::memory_order_acquire) >> 32;
    take_chunks(seen, worker);
  }
}

void limit_polling(char**) {}  // the pool's threads poll briefly anyway

}  // namespace longhand
