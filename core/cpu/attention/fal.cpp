#include <algorithm>

#include "core/contract/fal.h"
#include "core/cpu/attention/passes.h"
#include "core/cpu/chunks.h"

namespace longhand::cpu {
namespace {

constexpr std::int64_t query_rows = 4 * attention_panel;  // queries per forward work item
constexpr std::int64_t key_range = 4096;                  // keys per backward work item
constexpr std::int64_t no_window = std::int64_t{1} << 40;

/// Divides each segment into work items of `step` rows. The last rows of a segment come first in
/// the list, because later rows cost more.
WorkList items(std::int64_t segments, std::int64_t heads, std::int64_t step,
               FunctionRef<std::int64_t(std::int64_t segment)> length, double cost_of_row) {
  WorkList list;
  for (std::int64_t s = 0; s < segments; ++s) {
    const std::int64_t count = length(s), parts = (count + step - 1) / step;
    for (std::int64_t part = parts - 1; part >= 0; --part) {
      const std::int64_t begin = part * step, end = std::min(count, begin + step);
      const double cost = static_cast<double>(end - begin) * cost_of_row;
      const std::int64_t together = heads_together(cost, heads);
      for (std::int64_t h = 0; h < heads; h += together) {
        const std::int64_t end_head = std::min(heads, h + together);
        list.add({static_cast<std::int32_t>(s), static_cast<std::int32_t>(h),
                  static_cast<std::int32_t>(end_head), begin, end, part},
                 cost * static_cast<double>(end_head - h));
      }
    }
  }
  list.close();
  return list;
}

/// Returns how a kernel stores the rows of the heads y. It uses non-temporal stores if y is large,
/// y is overwritten and not added to, and the rows of each head consist of whole cache lines.
Store store_to_heads(const Heads& y, bool add) {
  if (!y) return {.add = add};
  const auto size = static_cast<std::int64_t>(size_of(y.data.dtype()));
  const auto start = reinterpret_cast<std::uintptr_t>(y.data.address()) +
                     static_cast<std::uintptr_t>(y.first_column * size);
  const bool lines =
      start % 64 == 0 && y.width * size % 64 == 0 && y.data.columns() * size % 64 == 0;
  return {.add = add, .stream = !add && lines && y.data.bytes() >= stream_from};
}

template <class T>
void attend(const ExecContext& exec, const Fal& op) {
  const auto& kernels = kernels_for<FalKernels<T>>(exec.isa);
  const std::int64_t heads = op.q.heads, group = heads / op.k.heads;
  const WorkList list = items(
      op.queries.count(), heads, query_rows,
      [&](std::int64_t s) { return op.queries.lengths()[s]; }, 64.0 * double(op.q.width));
  const Scratch scratch(op.y.data.backend(), exec.threads.threads(), kernels.scratch(op.q.width));
  const Store how = store_to_heads(op.y, false);
  list.run(exec.threads, [&](const WorkItem& item, int worker) {
    const SegmentRows at = segment_rows(op.queries, op.keys, item.segment);
    for (std::int64_t h = item.head; h < item.head_end; ++h) {
      const FalRows<T> task{
          .shape = {at.queries, at.keys, at.offset(), no_window, op.q.width, op.v.width},
          .q = rows_of<const T>(op.q, h, at.query),
          .k = rows_of<const T>(op.k, h / group, at.key),
          .v = rows_of<const T>(op.v, h / group, at.key),
          .y = rows_of<T>(op.y, h, at.query),
          .match = column_of<std::int32_t>(op.match, h, at.query),
          .stream = how.stream};
      kernels.rows(task, item.begin, item.end, scratch.of(worker));
    }
  });
}

template <class T>
void attend(const ExecContext& exec, const FalBackward& op) {
  const auto& kernels = kernels_for<FalKernels<T>>(exec.isa);
  const std::int64_t heads = op.k.heads, group = op.q.heads / heads;
  LONGHAND_CHECK(
      op.queries.longest() * group < std::int64_t{1} << 31,
      "fal_backward: expected fewer than 2^31 queries for each sequence and key head, got ",
      op.queries.longest() * group);
  const WorkList list = items(
      op.queries.count(), heads, key_range, [&](std::int64_t s) { return op.keys.lengths()[s]; },
      8.0 * double(op.q.width + op.v.width) * double(group));
  const Scratch scratch(
      op.q.data.backend(), exec.threads.threads(),
      kernels.gradient_scratch(op.q.width, op.v.width, std::min(key_range, op.keys.longest()),
                               op.queries.longest() * group));
  const Store to_dq = store_to_heads(op.dq.heads, op.dq.add),
              to_dk = store_to_heads(op.dk.heads, op.dk.add),
              to_dv = store_to_heads(op.dv.heads, op.dv.add);
  list.run(exec.threads, [&](const WorkItem& item, int worker) {
    const SegmentRows at = segment_rows(op.queries, op.keys, item.segment);
    for (std::int64_t h = item.head; h < item.head_end; ++h) {
      const FalGradients<T> task{
          .shape = {at.queries, at.keys, at.offset(), no_window, op.q.width, op.v.width},
          .heads = group,
          .q = rows_of<const T>(op.q, h * group, at.query),
          .k = rows_of<const T>(op.k, h, at.key),
          .v = rows_of<const T>(op.v, h, at.key),
          .dy = rows_of<const T>(op.dy, h * group, at.query),
          .match = column_of<const std::int32_t>(op.match, h * group, at.query),
          .dq = rows_of<T>(op.dq.heads, h * group, at.query),
          .dk = rows_of<T>(op.dk.heads, h, at.key),
          .dv = rows_of<T>(op.dv.heads, h, at.key),
          .to_dq = to_dq,
          .to_dk = to_dk,
          .to_dv = to_dv};
      kernels.gradients(task, item.begin, item.end, scratch.of(worker));
    }
  });
}

}  // namespace

void run(CpuBackend& backend, const Fal& op) {
  visit_activation(op.y.data.dtype(), [&]<class T>(T) { attend<T>(exec_of(backend), op); });
}

void run(CpuBackend& backend, const FalBackward& op) {
  visit_activation(op.q.data.dtype(), [&]<class T>(T) { attend<T>(exec_of(backend), op); });
}

}  // namespace longhand::cpu
