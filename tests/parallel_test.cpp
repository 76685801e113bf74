#include "core/parallel.h"

#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(parallel_test)

using namespace longhand;
namespace data = boost::unit_test::data;

namespace {

const std::vector<int> crews{1, 2, 3, 8};

}  // namespace

BOOST_DATA_TEST_CASE(every_chunk_runs_once, data::make(crews), threads) {
  ThreadPool pool(threads);
  BOOST_TEST(pool.threads() == threads);
  for (const std::int64_t chunks : {0, 1, 2, 3, 7, 8, 9, 1000}) {
    std::vector<int> runs(static_cast<std::size_t>(chunks));
    std::atomic<bool> worker_in_range{true};
    pool.run(chunks, [&](std::int64_t chunk, int worker) {
      ++runs[static_cast<std::size_t>(chunk)];
      if (worker < 0 || worker >= threads) worker_in_range = false;
    });
    BOOST_TEST(runs == std::vector<int>(runs.size(), 1));
    BOOST_TEST(worker_in_range.load());
  }
}

// Each worker thread increments the element of `counts` at its own worker number. If two threads
// had the same number, increments would be lost, and the thread sanitizer would report a race.
BOOST_DATA_TEST_CASE(a_worker_number_is_never_shared, data::make(crews), threads) {
  ThreadPool pool(threads);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(threads));
  for (int round = 0; round < 20; ++round) {
    pool.run(500, [&](std::int64_t, int worker) { ++counts[static_cast<std::size_t>(worker)]; });
  }
  BOOST_TEST(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}) == 10'000);
}

// Each run of the pool must see what any thread wrote in the previous run.
BOOST_DATA_TEST_CASE(many_tiny_runs_follow_each_other, data::make(crews), threads) {
  ThreadPool pool(threads);
  // Many threads on few cores are slow, so the test makes fewer rounds with them.
  const std::int64_t rounds = 20'000 / (threads * threads);
  std::vector<std::int64_t> values(4);
  for (std::int64_t round = 0; round < rounds; ++round) {
    pool.run(4, [&](std::int64_t chunk, int) {
      auto& value = values[static_cast<std::size_t>((chunk + round) % 4)];
      value = value == round ? round + 1 : -1;
    });
  }
  BOOST_TEST(values == std::vector<std::int64_t>(4, rounds));
}

BOOST_DATA_TEST_CASE(sleeping_workers_wake, data::make(crews), threads) {
  ThreadPool pool(threads);
  for (int round = 0; round < 5; ++round) {
    // Idle threads poll for less than 20 ms before they sleep. So all of them sleep after this
    // wait.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> sum{0};
    pool.run(100, [&](std::int64_t chunk, int) { sum += static_cast<int>(chunk); });
    BOOST_TEST(sum.load() == 4950);
  }
}

BOOST_DATA_TEST_CASE(an_exception_is_passed_on_and_the_pool_stays_usable, data::make(crews),
                     threads) {
  ThreadPool pool(threads);
  for (std::int64_t bad = 0; bad < 50; bad += 7) {
    const auto throwing = [&](std::int64_t chunk, int) {
      if (chunk == bad) throw std::runtime_error("chunk");
    };
    BOOST_TEST(refusal<std::runtime_error>([&] { pool.run(50, throwing); }) == "chunk");
    std::atomic<int> count{0};
    pool.run(50, [&](std::int64_t, int) { ++count; });
    BOOST_TEST(count.load() == 50);
  }
  BOOST_CHECK_THROW(pool.run(50, [](std::int64_t, int) { fail("all of them"); }), Error);
}

BOOST_DATA_TEST_CASE(pieces_do_not_depend_on_the_number_of_threads, data::make(crews), threads) {
  ThreadPool pool(threads);
  for (const std::int64_t count : {0, 1, 99, 100, 101, 1000}) {
    std::vector<std::int64_t> begins(static_cast<std::size_t>(count), -1);
    parallel_for(pool, count, 100, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) begins[static_cast<std::size_t>(i)] = begin;
    });
    for (std::int64_t i = 0; i < count; ++i) {
      BOOST_REQUIRE(begins[static_cast<std::size_t>(i)] == i / 100 * 100);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_thread_crew_has_the_requested_size) {
  BOOST_TEST(ThreadPool(0).threads() >= 1);
  BOOST_CHECK_THROW(ThreadPool(-1), Error);
  BOOST_CHECK_THROW(ThreadPool(1025), Error);
  BOOST_TEST(ThreadPool::count_of(0) == ThreadPool(0).threads());
  BOOST_TEST(ThreadPool::count_of(1000) == 1000);
  BOOST_CHECK_THROW(ThreadPool::count_of(-1), Error);
  BOOST_CHECK_THROW(ThreadPool::count_of(1025), Error);
  BOOST_TEST(usable_cores() >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
