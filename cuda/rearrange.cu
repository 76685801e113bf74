#include "core/contract/rearrange.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"
#include "cuda/walk.h"

namespace longhand::cuda {
namespace {

/// Copies entries of x to entries of y. Operand 0 of the Walk describes the places in x, and
/// operand 1 those in y. Each thread copies `width` neighbouring entries at a time.
template <int width, class From, class To>
__global__ void __launch_bounds__(block_threads)
    rearrange(const From* x, Out<To> y, Walk<2> walk, std::int64_t size) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    const Places<2> operand = places(walk, row_column(i, walk.inner));
    y.put(operand.at[1], load_line<width>(x + operand.at[0], walk.inner_step[0] == 0));
  }
}

}  // namespace

void run(CudaBackend& backend, const Rearrange& op) {
  if (!op.y) return;
  const auto w = walk(op.shape, {op.from, op.to});
  const std::int64_t size = op.shape.size();
  visit_activation(op.x.dtype(), [&]<class From>(From) {
    visit_activation(op.y.tensor.dtype(), [&]<class To>(To) {
      const From* const x = op.x.data<From>();
      const Out<To> y = out<To>(op.y);
      const auto move = [&]<int width>(std::integral_constant<int, width>) {
        launch(backend.stream(), backend.blocks_for(size / width, block_threads), block_threads, 0,
               &rearrange<width, From, To>, x, y, w, size);
      };
      constexpr int full = 4;
      const bool reads = w.inner_step[0] == 0 || in_packs(w, 0, full);
      if (reads && in_packs(w, 1, full) && on_16_bytes(x, y.y)) {
        move(std::integral_constant<int, full>{});
      } else {
        move(std::integral_constant<int, 1>{});
      }
    });
  });
}

}  // namespace longhand::cuda
