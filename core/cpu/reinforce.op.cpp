#include <cstdint>

#include "core/cpu/attention/kernels.h"
#include "core/cpu/isa.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// One query of one head, and its (query, key) pairs in the list Reinforce::pairs. The query sees
/// the keys from `first` to `last` of its segment.
template <class T>
struct ReinforcedQuery {
  HeadRows<const T> k, v;  // rows start at the segment's first key
  const T* q;
  T* y;
  std::int64_t width, value_width, first, last;
  // One number per key of the segment, which is subtracted from the scores of the key
  // (Scores::decay). Null if Scores::decay is empty.
  HeadRows<const float> shift;
  // `factor` multiplies the dot product of query and key. log_sum is the logarithm of the softmax
  // denominator of the query.
  float factor, log_sum;
  float log_threshold, amount;
  const std::int32_t* pairs;
  std::int64_t count;
};

template <class T>
struct ReinforceKernels {
  void (*query)(const ReinforcedQuery<T>& task);
};

}  // namespace longhand::cpu

#ifdef LONGHAND_ISA
#include "core/cpu/attention/rows.h"

namespace longhand::cpu {
namespace LONGHAND_ISA {
namespace {

/// True if the query sees the key and the key's attention weight exceeds Reinforce::threshold.
template <class T>
bool grows(const ReinforcedQuery<T>& task, std::int64_t key) {
  if (key < task.first || key > task.last) return false;
  float score = task.factor * attention::dot(task.q, task.k.row(key), task.width);
  if (task.shift) score += *task.shift.row(task.last) - *task.shift.row(key);
  const float log_weight = score - task.log_sum;
  return (log_weight < 0 ? log_weight : 0) > task.log_threshold;
}

/// Processes 64 (query, key) pairs at a time. First sets a bit for every pair whose weight exceeds
/// the threshold. Then sums the values of the keys in these pairs, and adds task.amount times the
/// sum to y.
template <class T>
void query(const ReinforcedQuery<T>& task) {
  for (std::int64_t begin = 0; begin < task.count; begin += 64) {
    const std::int32_t* const pairs = task.pairs + 2 * begin;
    const std::int64_t count = task.count - begin < 64 ? task.count - begin : 64;
    std::uint64_t growing = 0;
    for (std::int64_t n = 0; n < count; ++n) {
      if (grows(task, pairs[2 * n + 1])) growing |= std::uint64_t{1} << n;
    }
    if (growing == 0) continue;
    for (std::int64_t c = 0; c < task.value_width; c += lanes) {
      Vec sum(0.0f);
      for (std::uint64_t left = growing; left != 0; left &= left - 1) {
        const std::int32_t key = pairs[2 * __builtin_ctzll(left) + 1];
        sum += attention::get(task.v.row(key), c, task.value_width);
      }
      attention::put(Vec(task.amount) * sum, task.y, c, task.value_width, {.add = true});
    }
  }
}

template <class T>
constexpr ReinforceKernels<T> table{.query = query<T>};

}  // namespace
}  // namespace LONGHAND_ISA

template <>
const ReinforceKernels<float>& kernels<ReinforceKernels<float>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<float>;
}
template <>
const ReinforceKernels<bf16>& kernels<ReinforceKernels<bf16>, Isa::LONGHAND_ISA>() {
  return LONGHAND_ISA::table<bf16>;
}

}  // namespace longhand::cpu

#else
#include <algorithm>

#include "core/contract/reinforce.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/elementary.h"

namespace longhand::cpu {
namespace {

/// The index of the segment that contains row `row` of the queries.
std::int64_t segment_of(const Segments& queries, std::int32_t row) {
  return std::ranges::upper_bound(queries.begins(), row) - queries.begins().begin() - 1;
}

/// Executes Reinforce for the given (query, key) pairs of one query and for all heads.
template <class T>
void reinforce_query(const ReinforceKernels<T>& kernels, const Reinforce& op, float log_threshold,
                     const std::int32_t* pairs, std::int64_t count) {
  const Scores& s = op.scores;
  const std::int32_t row = pairs[0];
  if (row < 0 || row >= s.q.data.rows()) return;
  const SegmentRows at = segment_rows(s.queries, s.keys, segment_of(s.queries, row));
  const std::int64_t position = at.offset() + row - at.query, group = s.q.heads / s.k.heads;
  for (std::int64_t h = 0; h < s.q.heads; ++h) {
    const float amount = op.amounts.data<float>()[h];
    if (amount == 0) continue;
    const float tau = s.multiplier ? *column_of<const float>(s.multiplier, h, row).at : 1.0f;
    kernels.query({.k = rows_of<const T>(s.k, h / group, at.key),
                   .v = rows_of<const T>(op.v, h / group, at.key),
                   .q = rows_of<const T>(s.q, h, row).at,
                   .y = rows_of<T>(op.y, h, row).at,
                   .width = s.q.width,
                   .value_width = op.v.width,
                   .first = std::max<std::int64_t>(0, position + 1 - window_of(s)),
                   .last = position,
                   .shift = column_of<const float>(s.decay, h, at.key),
                   .factor = static_cast<float>(s.scale) * tau,
                   .log_sum = *column_of<const float>(op.log_denominator, h, row).at,
                   .log_threshold = log_threshold,
                   .amount = amount,
                   .pairs = pairs,
                   .count = count});
  }
}

}  // namespace

void run(CpuBackend& backend, const Reinforce& op) {
  const auto log_threshold = static_cast<float>(elementary::log(op.threshold));
  const auto* const pairs = op.pairs.data<std::int32_t>();
  const std::int64_t count = op.pairs.rows();
  const auto begins = [&](std::int64_t n) { return n == 0 || pairs[2 * n] != pairs[2 * n - 2]; };
  const std::int64_t chunk = rows_per_chunk(op.y.heads * (op.scores.q.width + op.v.width));
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<ReinforceKernels<T> >(backend.isa());
    // Each chunk of work is a range of the list of (query, key) pairs. If the first pair of a query
    // is in the range, the chunk processes all pairs of this query, even those after the range.
    parallel_for(backend.threads(), count, chunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        if (!begins(n)) continue;
        std::int64_t next = n + 1;
        while (next < count && !begins(next)) ++next;
        reinforce_query<T>(kernels, op, log_threshold, pairs + 2 * n, next - n);
      }
    });
  });
}

}  // namespace longhand::cpu
#endif
