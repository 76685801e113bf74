#include "core/error.h"
#include "core/parallel.h"

namespace longhand {

int usable_cores() { return 1; }

struct ThreadPool::Team {};

int ThreadPool::count_of(int threads) {
  LONGHAND_CHECK(threads == 0 || threads == 1,
                 "threads: expected 0 or 1, because this build has one thread, got ", threads);
  return 1;
}

ThreadPool::ThreadPool(int threads) : threads_(count_of(threads)) {}

ThreadPool::~ThreadPool() = default;

std::string_view ThreadPool::implementation() { return "none"; }

void ThreadPool::run(std::int64_t chunks, FunctionRef<void(std::int64_t, int)> body) {
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk, 0);
}

void limit_polling(char**) {}

}  // namespace longhand
