#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace longhand::nn {

/// Sequences one after another, without padding, on the host. targets and weights have `groups`
/// entries a token, all choices among the classes of output head `head`.
struct Batch {
  std::vector<std::int32_t> tokens = {};
  std::vector<std::int32_t> lengths = {};  // of the sequences; their sum is tokens.size()
  std::vector<std::int32_t> targets = {};  // negative: not counted
  std::vector<float> weights = {};         // empty: all 1
  std::int64_t groups = 1;
  std::int64_t head = 0;
  /// So many tokens at the end, the last sequence, are there only to make a batch of this shape:
  /// not counted, all at position 0.
  std::int64_t filling = 0;

  /// Sum of the weights of counted targets: what the batch's mean loss is divided by.
  double total_weight() const;
  /// lengths but for the filling.
  std::span<const std::int32_t> real_lengths() const {
    return {lengths.data(), lengths.size() - (filling > 0 ? 1 : 0)};
  }
};

/// Makes part `part` of step `step`'s data: a pure function of the two, so that neither threads nor
/// earlier steps matter. Steps count from 1. A step has accumulation * ranks parts.
using BatchSource = std::function<Batch(std::int64_t step, std::int64_t part)>;

/// Makes the batches of coming steps on a thread of its own, a few steps ahead.
class Prefetcher {
 public:
  struct Plan {
    std::int64_t first_step = 1, last_step = 0;
    std::int64_t first_part = 0, parts = 1;  // of every step
    std::size_t ahead = 2;                   // steps
  };
  Prefetcher(BatchSource source, Plan plan);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// The parts of the next step. What the source threw is thrown here; Interrupted where that is
  /// asked for while they are being made.
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
