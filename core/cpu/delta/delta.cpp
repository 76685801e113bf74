#include "core/contract/delta.h"

#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/delta/kernels.h"

namespace longhand::cpu {
namespace {

/// Makes one work item per segment and key head. Items run in parallel. The tokens of an item are
/// processed in order.
WorkList delta_work(const Segments& segments, std::int64_t heads, double cost_of_token) {
  WorkList list;
  for (std::int64_t s = 0; s < segments.count(); ++s) {
    const std::int64_t tokens = segments.lengths()[s];
    for (std::int64_t h = 0; h < heads; ++h) {
      list.add({static_cast<std::int32_t>(s), static_cast<std::int32_t>(h),
                static_cast<std::int32_t>(h + 1), 0, tokens, 0},
               static_cast<double>(tokens) * cost_of_token);
    }
  }
  list.close();
  return list;
}

/// Estimates the number of multiplications per token for one key head and its `group` query heads.
double delta_cost(const Heads& k, std::int64_t v_width, std::int64_t group) {
  const auto wide = static_cast<double>(k.width + delta_chunk);
  return wide * static_cast<double>(v_width + delta_chunk) * static_cast<double>(1 + group);
}

template <class T, class Op>
DeltaInput<T> delta_input(const Op& op, std::int64_t v_width, const WorkItem& item) {
  const std::int64_t row = op.segments.begins()[item.segment], group = op.q.heads / op.k.heads;
  return {.tokens = item.end,
          .width = op.k.width,
          .v_width = v_width,
          .group = group,
          .scale = static_cast<float>(op.scale),
          .q = rows_of<const T>(op.q, item.head * group, row),
          .k = rows_of<const T>(op.k, item.head, row),
          .beta = column_of<const float>(op.beta, item.head, row),
          .decay = column_of<const float>(op.decay, item.head, row)};
}

}  // namespace

void run(CpuBackend& backend, const Delta& op) {
  visit_activation(op.q.data.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<DeltaKernels<T>>(backend.isa());
    const std::int64_t width = op.k.width, v_width = op.v.width, group = op.q.heads / op.k.heads;
    const Scratch scratch(backend, backend.threads().threads(),
                          kernels.forward_scratch(width, v_width));
    const auto memory = [&](const Tensor& all, const WorkItem& item) {
      const std::int64_t at = item.segment * op.k.heads + item.head;
      return all ? all.data<float>() + at * width * v_width : nullptr;
    };
    const WorkList list = delta_work(op.segments, op.k.heads, delta_cost(op.k, v_width, group));
    list.run(backend.threads(), [&](const WorkItem& item, int worker) {
      const std::int64_t row = op.segments.begins()[item.segment];
      const Heads error{op.error, 0, op.k.heads, v_width};
      kernels.forward({.in = delta_input<T>(op, v_width, item),
                       .v = rows_of<const T>(op.v, item.head, row),
                       .y = rows_of<T>(op.y, item.head * group, row),
                       .error = rows_of<float>(error, item.head, row),
                       .before = memory(op.before, item),
                       .after = memory(op.after, item)},
                      scratch.of(worker));
    });
  });
}

void run(CpuBackend& backend, const DeltaBackward& op) {
  visit_activation(op.q.data.dtype(), [&]<class T>(T) {
    const auto& kernels = kernels_for<DeltaKernels<T>>(backend.isa());
    const std::int64_t v_width = op.dy.width, group = op.q.heads / op.k.heads;
    const Scratch scratch(backend, backend.threads().threads(),
                          kernels.backward_scratch(op.segments.longest(), op.k.width, v_width));
    const WorkList list = delta_work(op.segments, op.k.heads, 3 * delta_cost(op.k, v_width, group));
    list.run(backend.threads(), [&](const WorkItem& item, int worker) {
      const std::int64_t row = op.segments.begins()[item.segment], h = item.head;
      kernels.backward({.in = delta_input<T>(op, v_width, item),
                        .dy = rows_of<const T>(op.dy, h * group, row),
                        .error = rows_of<const float>({op.error, 0, op.k.heads, v_width}, h, row),
                        .dq = rows_of<T>(op.dq.heads, h * group, row),
                        .dk = rows_of<T>(op.dk.heads, h, row),
                        .dv = rows_of<T>(op.dv.heads, h, row),
                        .dq_how = {.add = op.dq.add},
                        .dk_how = {.add = op.dk.add},
                        .dv_how = {.add = op.dv.add},
                        .dbeta = column_of<float>(op.dbeta.tensor, h, row),
                        .ddecay = column_of<float>(op.ddecay.tensor, h, row),
                        .dbeta_how = {.add = op.dbeta.add},
                        .ddecay_how = {.add = op.ddecay.add}},
                       scratch.of(worker));
    });
  });
}

}  // namespace longhand::cpu
