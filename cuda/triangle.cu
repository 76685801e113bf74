#include "core/contract/triangle.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// y_ij = alpha x_ij for j <= i + diagonal, or for j >= i + diagonal if `upper` is set. All other
/// entries of y are 0.
template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    triangle(const T* x, bool upper, std::int64_t diagonal, float alpha, Out<T> y,
             std::int64_t size, std::int64_t n) {
  const std::int64_t at = thread_in_grid() * width;
  if (at >= size) return;
  const RowColumn place = row_column(at, n);
  const std::int64_t boundary = row_column(place.row, n).column + diagonal;
  Floats<width> a = load<width>(x + at);
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const std::int64_t j = place.column + k;
    a.at[k] = (upper ? j >= boundary : j <= boundary) ? alpha * a.at[k] : 0.0f;
  }
  y.put(at, a);
}

}  // namespace

void run(CudaBackend& backend, const Triangle& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* x = op.x.data<T>();
    const Out<T> y = out<T>(op.y);
    const std::int64_t size = op.x.size(), n = op.x.columns();
    with_width<T>(on_16_bytes(x, y.y) && n % full_width<T> == 0, [&](auto width) {
      launch(backend.stream(), grid_of(size / width), block_threads, 0, triangle<width, T>, x,
             op.upper, op.diagonal, static_cast<float>(op.alpha), y, size, n);
    });
  });
}

}  // namespace longhand::cuda
