#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/contract/scores.h"
#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"

/// Divides the work of the attention operations by segment (sequence), head and rows. The division
/// does not depend on the number of threads.
namespace longhand::cpu {

/// The thread pool and the instruction set of the kernels.
struct ExecContext {
  ThreadPool& threads;
  Isa isa;
};

/// A piece of work: the query rows (in the forward pass) or keys (in the backward pass) [begin,
/// end) of one segment, for the heads [head, head_end).
struct WorkItem {
  std::int32_t segment, head, head_end;
  std::int64_t begin, end;
  std::int64_t part;  // index of [begin, end) among the ranges of the segment
};

/// The work items of a pass, in processing order. They are grouped into chunks: chunk c consists of
/// the items [starts[c], starts[c + 1]). A thread processes a whole chunk at a time.
struct WorkList {
  std::vector<WorkItem> items;
  std::vector<std::size_t> starts{0};

  void add(const WorkItem& item, double cost);
  /// Ends the last chunk of items. Must be called after all items are added.
  void close();
  void run(ThreadPool& threads, FunctionRef<void(const WorkItem&, int worker)> body) const;

 private:
  double open_ = 0;  // cost of the items in the chunk that is not yet ended
};

/// Returns how many heads a work item should contain, so that computing the item takes much longer
/// than passing it to a thread. The result is at most `heads`.
std::int64_t heads_together(double cost_of_head, std::int64_t heads);

/// Returns the Scores of an operation that has only q, k, their segments and a scale.
template <class Op>
Scores plain_scores(const Op& op) {
  return {.q = op.q, .k = op.k, .queries = op.queries, .keys = op.keys, .scale = op.scale};
}

/// The rows of one segment (sequence): the index of its first query, its number of queries, the
/// index of its first key, and its number of keys.
struct SegmentRows {
  std::int64_t query, queries, key, keys;
  std::int64_t offset() const { return keys - queries; }
};
SegmentRows segment_rows(const Segments& queries, const Segments& keys, std::int64_t segment);

/// Returns the position of a segment's first query. Kernels always apply a causal mask. If the
/// operation has no causal mask, the returned position is after the last key, so that every query
/// sees every key.
inline std::int64_t first_position(const Scores& scores, const SegmentRows& at) {
  return scores.causal ? at.offset() : at.keys;
}

/// Returns head `head` of x, beginning at row `row`. If x is empty, the result is null.
template <class T>
HeadRows<T> rows_of(const Heads& x, std::int64_t head, std::int64_t row) {
  if (!x) return {};
  const std::int64_t columns = x.data.columns();
  using Element = std::remove_const_t<T>;
  return {x.data.data<Element>() + row * columns + x.first_column + head * x.width, columns};
}

/// Returns column `column` of the [tokens, heads] tensor x, beginning at row `row`. If x is empty,
/// the result is null.
template <class T>
HeadRows<T> column_of(const Tensor& x, std::int64_t column, std::int64_t row) {
  if (!x) return {};
  using Element = std::remove_const_t<T>;
  return {x.data<Element>() + row * x.columns() + column, x.columns()};
}

/// f32 scratch memory for every thread. No two threads share a cache line.
class Scratch {
 public:
  Scratch(Backend& backend, int threads, std::int64_t floats);
  float* of(int worker) const { return base_ + worker * stride_; }

 private:
  Tensor memory_;
  std::int64_t stride_;
  float* base_;
};

Tensor floats(Backend& backend, std::int64_t count);

std::int64_t window_of(const Scores& scores);

/// Stores a progress value for each work item. An item can wait until the value of another item
/// reaches a given number. It may wait only for items earlier in the list. Earlier items are
/// started first, so the earliest running item never waits, and there is no deadlock.
class Progress {
 public:
  explicit Progress(std::size_t items) : done_(items) {}
  void reach(std::size_t item, std::int64_t value) {
    done_[item].store(value, std::memory_order_release);
  }
  void wait(std::size_t item, std::int64_t value) const;

 private:
  std::vector<std::atomic<std::int64_t>> done_;
};

}  // namespace longhand::cpu
