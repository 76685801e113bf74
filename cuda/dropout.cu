#include "core/contract/dropout.h"

#include "cuda/cuda_backend.h"
#include "cuda/floats.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Parameters of a dropout operation that are the same for all entries (core/contract/dropout.h).
struct Draw {
  const std::int32_t* step;
  std::array<std::uint32_t, 2> key;
  std::uint32_t index, threshold;
  float kept;  // factor of entries that are not dropped, 1 / (1 - rate)
};

/// With each call of philox(), a thread draws four random words, for four consecutive entries of x.
template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    dropout(const T* x, Out<T> y, std::int64_t size, const Draw draw) {
  const auto step = static_cast<std::uint32_t>(*draw.step);
  for (std::int64_t i = 4 * thread_in_grid(); i < size; i += 4 * threads_in_grid()) {
    const auto words =
        philox(dropout_counter(static_cast<std::uint32_t>(i / 4), draw.index, step), draw.key);
#pragma unroll
    for (int first = 0; first < 4; first += width) {
      if (i + first >= size) break;
      Floats<width> part = load<width>(x + i + first);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        part.at[k] = words[first + k] < draw.threshold ? 0.0f : draw.kept * part.at[k];
      }
      y.put(i + first, part);
    }
  }
}

}  // namespace

void run(CudaBackend& backend, const Dropout& op) {
  if (!op.y || op.x.size() == 0) return;
  const Draw draw{.step = op.step.data<std::int32_t>(),
                  .key = op.key(),
                  .index = op.index,
                  .threshold = op.threshold(),
                  .kept = static_cast<float>(op.kept())};
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* const x = op.x.data<T>();
    const Out<T> y = out<T>(op.y);
    const std::int64_t size = op.x.size();
    const auto run_with = [&](auto width) {
      launch(backend.stream(), grid_of((size + 3) / 4), block_threads, 0, dropout<width, T>, x, y,
             size, draw);
    };
    if (on_16_bytes(x, y.y) && size % 4 == 0) return run_with(std::integral_constant<int, 4>{});
    run_with(std::integral_constant<int, 1>{});
  });
}

}  // namespace longhand::cuda
