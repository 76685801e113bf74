#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"
#include "core/parallel.h"
#include "core/rule_tensors.h"

/// Divides the work of the attention family by segment, head and rows. The division does not depend
/// on the number of threads.
namespace longhand::cpu {

/// The thread pool and the instruction set of the kernels.
struct Crew {
  ThreadPool& threads;
  Isa isa;
};

/// The rows or keys [begin, end) of one segment, for the heads [head, head_end).
struct WorkItem {
  std::int32_t segment, head, head_end;
  std::int64_t begin, end;
  std::int64_t part;  // index of this range in the segment
};

/// Items in processing order. Chunk c consists of the items [starts[c], starts[c + 1]). A thread
/// processes a whole chunk.
struct WorkList {
  std::vector<WorkItem> items;
  std::vector<std::size_t> starts{0};

  void add(const WorkItem& item, double cost);
  /// Ends the last chunk. Must be called after all items are added.
  void close();
  void run(ThreadPool& threads, FunctionRef<void(const WorkItem&, int worker)> body) const;

 private:
  double open_ = 0;  // cost of the chunk that is not yet ended
};

/// Number of heads that an item must contain to be worth passing to a thread, at most `heads`.
std::int64_t heads_together(double cost_of_head, std::int64_t heads);

/// Minimum sequence length for products of split operands. For shorter sequences, packing costs
/// more time than these products save.
inline constexpr std::int64_t least_split_keys = 256;

/// True if products use tile registers on processors that have them. Only softmax uses tiles. TRA
/// requires f32 products, entmax must compute the same bits of a mean in two places, ChaCAL and
/// DeltaFormer solve rows between their products, and stick-breaking stops early.
constexpr bool suits_tiles(Rule rule, bool solved, Math math, std::int64_t longest) {
  if (rule != Rule::softmax || solved) return false;
  return math == Math::bf16 || (math == Math::fast && longest >= least_split_keys);
}

/// The kernels for a math mode.
template <class Kernels>
const Kernels& by_math(const ByProduct<Kernels>& all, Math math) {
  return math == Math::bf16 ? all.bf16 : math == Math::fast ? all.fast : all.exact;
}

/// The kernels of a rule.
template <class Kernels>
const Kernels& kernels_of(const Crew& crew, Rule rule, bool solved, Math math,
                          std::int64_t longest) {
  const bool tiles = suits_tiles(rule, solved, math, longest);
  const Isa isa = tiles ? crew.isa : std::min(crew.isa, Isa::avx512bf16);
  const auto& all = rule == Rule::softmax ? kernels_for<ByProduct<Kernels>>(isa)
                                          : kernels_for<ByRule<Kernels>>(isa).of(rule);
  return by_math(all, math);
}

/// The kernels of ChaCAL or of DeltaFormer.
template <class Kernels>
const Kernels& solve_kernels(const Crew& crew, bool chacal, Math math) {
  const auto& all = kernels_for<BySolve<Kernels>>(std::min(crew.isa, Isa::avx512bf16));
  return by_math(chacal ? all.chacal : all.deltaformer, math);
}

/// The Scores of an operation that has only q, k, their segments and a scale.
template <class Op>
Scores plain_scores(const Op& op) {
  return {.q = op.q, .k = op.k, .queries = op.queries, .keys = op.keys, .scale = op.scale};
}

/// One segment in the tensors: its first query, number of queries, first key and number of keys.
struct SegmentRows {
  std::int64_t query, queries, key, keys;
  std::int64_t offset() const { return keys - queries; }
};
SegmentRows segment_rows(const Segments& queries, const Segments& keys, std::int64_t segment);

/// Head `head` of x, beginning at row `row`.
template <class T>
HeadRows<T> rows_of(const Heads& x, std::int64_t head, std::int64_t row) {
  if (!x) return {};
  const std::int64_t columns = x.data.columns();
  using Element = std::remove_const_t<T>;
  return {x.data.data<Element>() + row * columns + x.first_column + head * x.width, columns};
}

/// Column `column` of a [tokens, heads] tensor, beginning at row `row`.
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

/// Stores how far each item has progressed, so that other items can wait for it. An item may wait
/// only for items earlier in the list. Earlier items are started first, so the earliest running
/// item never waits.
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
