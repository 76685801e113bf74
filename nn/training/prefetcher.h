#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "nn/batch.h"

namespace longhand::nn {

/// Makes the batches of the next steps in advance, on a separate thread.
class Prefetcher {
 public:
  struct Plan {
    std::int64_t first_step = 1, last_step = 0;
    // Index of the first batch to make in each step, and number of batches to make in each step.
    std::int64_t first_batch = 0, batches = 1;
    std::size_t ahead = 2;  // maximum number of steps to make in advance
  };
  Prefetcher(BatchSource source, Plan plan);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Returns the batches of the next step. If the source throws an exception, rethrows it. Throws
  /// Interrupted if `interrupt` returns true while this function waits.
  std::vector<Batch> next(const std::function<bool()>& interrupt = {});

 private:
  void work();
  bool stopped();

  BatchSource source_;
  Plan plan_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<Batch>> ready_;
  std::exception_ptr error_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace longhand::nn
