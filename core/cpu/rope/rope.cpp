#include "core/contract/rope.h"

#include "core/contract/require.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/rope/kernels.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Rope& op) {
  if (!op.y) return;
  if (op.dims > 0) require_indices(Rope::name, "positions", op.positions, op.table.shape()[0]);
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<RopeKernels<T>>(backend.isa());
    // Non-temporal stores require aligned addresses. They are not used, because a head may begin at
    // any address.
    const typename RopeKernels<T>::Arguments rows{.x = op.x.data<T>(),
                                                  .positions = op.positions.data<std::int32_t>(),
                                                  .table = op.table.data<float>(),
                                                  .columns = op.x.columns(),
                                                  .first_column = op.first_column,
                                                  .heads = op.heads,
                                                  .width = op.width,
                                                  .dims = op.dims,
                                                  .interleaved = op.interleaved,
                                                  .direction = op.inverse ? -1.0f : 1.0f,
                                                  .y = op.y.tensor.data<T>(),
                                                  .how = {.add = op.y.add}};
    parallel_for(backend.threads(), op.x.rows(), rows_per_chunk(op.x.columns()),
                 [&](std::int64_t begin, std::int64_t end) { k.rotate(rows, begin, end); });
  });
}

void run(CpuBackend& backend, const Rotate& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<RotateKernels<T>>(backend.isa());
    const typename RotateKernels<T>::Arguments rows{.x = op.x.data<T>(),
                                                    .dy = nullptr,
                                                    .angles = op.angles.data<float>(),
                                                    .columns = op.x.columns(),
                                                    .first_column = op.first_column,
                                                    .heads = op.heads,
                                                    .width = op.width,
                                                    .groups = op.angles.columns() / (op.width / 2),
                                                    .direction = op.inverse ? -1.0f : 1.0f,
                                                    .y = op.y.data<T>(),
                                                    .dangles = nullptr,
                                                    .how = {}};
    parallel_for(backend.threads(), op.x.rows(), rows_per_chunk(op.x.columns()),
                 [&](std::int64_t begin, std::int64_t end) { k.forward(rows, begin, end); });
  });
}

void run(CpuBackend& backend, const RotateBackward& op) {
  if (!op.dangles) return;
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<RotateKernels<T>>(backend.isa());
    const typename RotateKernels<T>::Arguments rows{
        .x = op.y.data<T>(),
        .dy = op.dy.data<T>(),
        .angles = nullptr,
        .columns = op.y.columns(),
        .first_column = op.first_column,
        .heads = op.heads,
        .width = op.width,
        .groups = op.dangles.tensor.columns() / (op.width / 2),
        .direction = 1,
        .y = nullptr,
        .dangles = op.dangles.tensor.data<float>(),
        .how = {.add = op.dangles.add}};
    parallel_for(backend.threads(), op.y.rows(), rows_per_chunk(op.y.columns()),
                 [&](std::int64_t begin, std::int64_t end) { k.backward(rows, begin, end); });
  });
}

}  // namespace longhand::cpu
