#include "core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "core/error.h"

namespace longhand {

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

int ThreadPool::count_of(int threads) {
  LONGHAND_CHECK(threads >= 0 && threads <= 1024,
                 "threads: expected 1 to 1024, or 0 for all cores, got ", threads);
  return threads == 0 ? default_count() : threads;
}

void ThreadPool::fail_to_start(int threads, std::size_t started, const std::system_error& error) {
  fail("threads: expected ", threads, " threads, could start only ", started, ": ",
       error.code().message(), "; --threads ", started,
       " or a higher limit (ulimit -u) avoids this");
}

}  // namespace longhand
