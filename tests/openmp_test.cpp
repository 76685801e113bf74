#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <vector>
#include "tests/check.h"

#include "apps/machine.h"
#include "core/parallel.h"

BOOST_AUTO_TEST_SUITE(openmp_test)

using namespace longhand;

namespace {

/// Computes 1 + 2 + ... + n. Each of n chunks of work computes one of the terms.
std::int64_t sum_of_chunks(ThreadPool& pool, std::int64_t n) {
  std::vector<std::int64_t> terms(static_cast<std::size_t>(n));
  pool.run(n, [&](std::int64_t chunk, int) { terms[static_cast<std::size_t>(chunk)] = chunk + 1; });
  std::int64_t sum = 0;
  for (const std::int64_t term : terms) sum += term;
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(all_cores_are_as_many_threads_as_openmp_would_start) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  BOOST_TEST(ThreadPool(0).threads() == 3);
  omp_set_num_threads(before);
}

BOOST_AUTO_TEST_CASE(a_limit_of_threads_does_not_change_the_described_machine) {
  const int before = omp_get_max_threads();
  const std::string machine = app::machine();
  omp_set_num_threads(before + 3);
  BOOST_TEST(app::machine() == machine);
  omp_set_num_threads(before);
}

BOOST_AUTO_TEST_CASE(inside_a_parallel_region_a_pool_runs_on_its_calling_thread) {
  std::vector<std::int64_t> sums(4);
#pragma omp parallel for num_threads(2)
  for (int i = 0; i < 4; ++i) {
    ThreadPool pool(2);
    const int caller = omp_get_thread_num();
    bool same = true;
    pool.run(100, [&](std::int64_t, int worker) {
      same = same && worker == 0 && omp_get_thread_num() == caller;
    });
    sums[static_cast<std::size_t>(i)] = same ? sum_of_chunks(pool, 100) : 0;
  }
  BOOST_TEST(sums == std::vector<std::int64_t>(4, 5050));
}

// After fork(), OpenMP's threads do not exist in the child process. A parallel region there would
// wait for them forever.
BOOST_AUTO_TEST_CASE(after_a_fork_the_child_computes_on_one_thread) {
  ThreadPool pool(2);
  BOOST_TEST(sum_of_chunks(pool, 100) == 5050);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // kills the child process if it waits for a thread
    ::_exit(sum_of_chunks(pool, 100) == 5050 ? 0 : 1);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_TEST(status == 0);
  BOOST_TEST(sum_of_chunks(pool, 100) == 5050);
}

BOOST_AUTO_TEST_SUITE_END()
