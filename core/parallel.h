#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace longhand {

/// A non-owning reference to a callable; never allocates.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
      FunctionRef(F&& f)  // NOLINT: implicit on purpose, so that callables can be passed directly
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// A fixed set of threads. Work is divided into chunks that depend only on the problem, not on the
/// number of threads. An idle thread takes the next chunk. If each chunk writes its own results,
/// the bits are the same for any number of threads.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);  // 0: one per core that this process may use
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(chunk, worker) once for each chunk in [0, chunks). `worker` is the number of the
  /// calling thread, in [0, threads()). Returns when all chunks are done, and rethrows the first
  /// exception. Not reentrant.
  void run(std::int64_t chunks, FunctionRef<void(std::int64_t chunk, int worker)> body);

 private:
  using Body = FunctionRef<void(std::int64_t, int)>;
  void work(int worker);
  void join();
  void take_chunks(std::uint64_t job, int worker);

  std::vector<std::thread> workers_;
  bool keep_apart_ = false;  // workers avoid the caller's core; false if there are few cores
  std::atomic<int> caller_core_{-1};
  std::mutex mutex_;
  std::condition_variable wake_;
  /// The upper half is the number of the job, and the lower half is its next chunk. A thread takes
  /// a chunk by incrementing the ticket with compare-and-exchange, so it cannot take a chunk of a
  /// finished job. Between jobs the lower half is `closed`. Only then are body_ and chunks_
  /// changed.
  std::atomic<std::uint64_t> ticket_{closed};
  static constexpr std::uint64_t closed = 0xffffffffu;
  std::atomic<const Body*> body_{nullptr};
  std::atomic<std::uint64_t> chunks_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::exception_ptr error_;
};

/// Divides [0, count) into pieces of `grain` elements, of which the last may be shorter, and calls
/// body(begin, end) for each piece.
template <class Body>
void parallel_for(ThreadPool& pool, std::int64_t count, std::int64_t grain, Body&& body) {
  if (count <= 0) return;
  const std::int64_t chunks = (count + grain - 1) / grain;
  auto piece = [&](std::int64_t chunk, int) {
    const std::int64_t begin = chunk * grain;
    body(begin, begin + grain < count ? begin + grain : count);
  };
  if (chunks == 1) {
    piece(0, 0);
  } else {
    pool.run(chunks, piece);
  }
}

}  // namespace longhand
