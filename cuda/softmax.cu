#include "core/contract/softmax.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// y_ij = exp(x_ij - max_i) / sum_k exp(x_ik - max_i), where the sum and the maximum max_i include
/// only the first `visible` entries of row i. The other entries of y are 0. If t > 0, every t
/// consecutive rows form a matrix with a causal mask. Otherwise all entries are visible.
template <class Layout, class T>
__global__ void __launch_bounds__(block_threads)
    softmax(const T* all_x, T* y, std::int64_t rows, int n, std::int64_t t) {
  constexpr int width = Layout::width;
  const std::int64_t i = Layout::row();
  if (i >= rows) return;
  const Row<T, Layout> x(all_x + i * n, n);
  int visible = n;
  if (t > 0) {
    const std::int64_t count = i % t + 1 + (n - t);
    visible = static_cast<int>(count < 0 ? 0 : count > n ? n : count);
  }

  float largest = Largest::start;
  Layout::each(visible, [&](int slot, int j) {
    const Floats<width> a = x.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (j + k < visible) largest = Largest{}(largest, a.at[k]);
    }
  });
  largest = Layout::Team::reduce(largest, Largest{});
  const bool nothing = largest == Largest::start;

  float sum = 0;
  Layout::each(visible, [&](int slot, int j) {
    const Floats<width> a = x.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (j + k < visible) sum += expf(a.at[k] - largest);
    }
  });
  sum = Layout::Team::sum(sum);

  const float factor = 1.0f / sum;
  Layout::each(n, [&](int slot, int j) {
    Floats<width> a = x.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      a.at[k] = nothing || j + k >= visible ? 0.0f : expf(a.at[k] - largest) * factor;
    }
    store(y + i * n + j, a);
  });
}

/// dx_ij = y_ij (dy_ij - sum_k dy_ik y_ik)
template <class Layout, class T>
__global__ void __launch_bounds__(block_threads)
    softmax_backward(const T* all_y, const T* all_dy, Out<T> dx, std::int64_t rows, int n) {
  constexpr int width = Layout::width;
  const std::int64_t i = Layout::row();
  if (i >= rows) return;
  const Row<T, Layout> y(all_y + i * n, n), dy(all_dy + i * n, n);

  float sum = 0;
  Layout::each(n, [&](int slot, int j) {
    const Floats<width> a = y.at(slot, j), d = dy.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) sum += d.at[k] * a.at[k];
  });
  sum = Layout::Team::sum(sum);
  Layout::each(n, [&](int slot, int j) {
    Floats<width> a = y.at(slot, j);
    const Floats<width> d = dy.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) a.at[k] *= d.at[k] - sum;
    dx.put(i * n + j, a);
  });
}

}  // namespace

void run(CudaBackend& backend, const Softmax& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* x = op.x.data<T>();
    T* y = op.y.data<T>();
    const int n = row_length(Softmax::name, op.x);
    const std::int64_t rows = op.x.rows(), t = op.causal ? op.x.shape()[-2] : 0;
    with_row_layout<T>(n, on_16_bytes(x, y), [&](auto layout) {
      using Layout = decltype(layout);
      launch(backend.stream(), Layout::blocks(rows), block_threads, 0, softmax<Layout, T>, x, y,
             rows, n, t);
    });
  });
}

void run(CudaBackend& backend, const SoftmaxBackward& op) {
  if (!op.dx) return;
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const T *y = op.y.data<T>(), *dy = op.dy.data<T>();
    const Out<T> dx = out<T>(op.dx);
    const int n = row_length(SoftmaxBackward::name, op.y);
    with_row_layout<T>(n, on_16_bytes(y, dy, dx.y), [&](auto layout) {
      using Layout = decltype(layout);
      launch(backend.stream(), Layout::blocks(op.y.rows()), block_threads, 0,
             softmax_backward<Layout, T>, y, dy, dx, op.y.rows(), n);
    });
  });
}

}  // namespace longhand::cuda
