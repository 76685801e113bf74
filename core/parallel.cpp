#include "core/parallel.h"

#include "core/error.h"

namespace longhand {

int ThreadPool::checked(int threads, int all) {
  LONGHAND_CHECK(threads >= 0 && threads <= 1024, "threads: expected 0 (all cores) to 1024, got ",
                 threads);
  return threads == 0 ? all : threads;
}

void ThreadPool::fail_to_start(int threads, std::size_t started, const std::system_error& error) {
  fail("threads: expected ", threads, ", could start ", started, ": ", error.code().message(),
       "; --threads ", started, " or a higher limit (ulimit -u) avoids this");
}

}  // namespace longhand
