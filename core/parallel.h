#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

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

/// Number of cores that this process may use.
int usable_cores();

/// A fixed number of threads. Work is divided into chunks that depend only on the problem, not on
/// the number of threads. An idle thread takes the next chunk. If each chunk writes its own
/// results, the bits are the same for any number of threads.
///
/// The build option LONGHAND_THREADS selects the threads: `openmp`, `pool` (the library's own) or
/// `none` (the calling thread only). One of parallel_openmp.cpp, parallel_pool.cpp and
/// parallel_none.cpp is compiled.
class ThreadPool {
 public:
  /// If `threads` is 0, there is one thread per usable core. With OpenMP, the environment variable
  /// OMP_NUM_THREADS overrides this number if the variable is set.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  /// Returns the number of threads that a ThreadPool(threads) would have. Starts no thread.
  static int count_of(int threads);

  /// Calls body(chunk, worker) once for each chunk in [0, chunks). `worker` is the number of the
  /// thread that calls body, in [0, threads()). Returns when all chunks are done, and rethrows the
  /// first exception. Not reentrant.
  void run(std::int64_t chunks, FunctionRef<void(std::int64_t chunk, int worker)> body);

  static std::string_view implementation();  // "OpenMP", "pool" or "none"

 private:
  struct Team;
  static int default_count();  // number of threads of a ThreadPool(0)
  [[noreturn]] static void fail_to_start(int threads, std::size_t started,
                                         const std::system_error& error);

  int threads_;
  std::unique_ptr<Team> team_;
};

/// Limits how long idle threads of OpenMP poll before they sleep. main() must call this function
/// first. By default, GCC's OpenMP polls for milliseconds, which slows other programs on the same
/// cores. OpenMP reads the limit from the environment while the program is loaded. This function
/// therefore sets the environment variable and starts the program again. Does nothing if the
/// environment already has a limit.
void limit_polling(char** arguments);

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
