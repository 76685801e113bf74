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
    // Streaming needs every stretch on a boundary; heads may begin and end anywhere.
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

}  // namespace longhand::cpu
