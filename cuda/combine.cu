#include "core/contract/combine.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"
#include "cuda/walk.h"

namespace longhand::cuda {
namespace {

/// y_i = f(a_i, b_i) for operands of equal shape.
template <int width, class F, class T>
__global__ void __launch_bounds__(block_threads)
    combine(const T* a, const T* b, Out<T> y, std::int64_t size) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> u = load<width>(a + i);
    const Floats<width> v = load<width>(b + i);
#pragma unroll
    for (int k = 0; k < width; ++k) u.at[k] = F::value(u.at[k], v.at[k]);
    y.put(i, u);
  }
}

/// y_i = f(a_i, b_i) with broadcast operands.
template <int width, class F, class T>
__global__ void __launch_bounds__(block_threads)
    combine_repeated(const T* a, const T* b, Out<T> y, Walk<2> walk, std::int64_t size) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    const Places<2> operand = places(walk, row_column(i, walk.inner));
    Floats<width> u = load_line<width>(a + operand.at[0], walk.inner_step[0] == 0);
    const Floats<width> v = load_line<width>(b + operand.at[1], walk.inner_step[1] == 0);
#pragma unroll
    for (int k = 0; k < width; ++k) u.at[k] = F::value(u.at[k], v.at[k]);
    y.put(i, u);
  }
}

}  // namespace

void run(CudaBackend& backend, const Combine& op) {
  if (!op.y) return;
  const Shape& shape = op.y.tensor.shape();
  const auto w = walk(shape, {repeated(op.a.shape(), shape), repeated(op.b.shape(), shape)});
  const bool same_shapes = op.a.shape() == op.b.shape();
  const std::int64_t size = shape.size();
  visit_activation(op.a.dtype(), [&]<class T>(T) {
    const T *const a = op.a.data<T>(), *const b = op.b.data<T>();
    const Out<T> y = out<T>(op.y);
    const auto packs = [&](int k) { return w.inner_step[k] == 0 || in_packs(w, k, full_width<T>); };
    const bool fits =
        w.inner % full_width<T> == 0 && packs(0) && packs(1) && on_16_bytes(a, b, y.y);
    with_width<T>(fits, [&]<int width>(std::integral_constant<int, width>) {
      const std::int64_t blocks = backend.blocks_for(size / width, block_threads);
      with_formula(op.f, [&](auto f) {
        if (same_shapes) {
          launch(backend.stream(), blocks, block_threads, 0, &combine<width, decltype(f), T>, a, b,
                 y, size);
        } else {
          launch(backend.stream(), blocks, block_threads, 0,
                 &combine_repeated<width, decltype(f), T>, a, b, y, w, size);
        }
      });
    });
  });
}

}  // namespace longhand::cuda
