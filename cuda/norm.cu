#include "core/contract/norm.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Arguments of LayerNorm and RmsNorm (core/contract/norm.h) for rows of n entries. For RmsNorm,
/// `mean` is null, and no mean is subtracted. Column j is multiplied by offset + gain_j. bias may
/// be null.
template <class T>
struct NormForward {
  const T* x;
  const float *gain, *bias;
  float offset, epsilon;
  T* y;
  float *mean, *rstd;
  std::int64_t rows;
  int n;
};

/// For each row, computes the mean, then the sum of squared deviations, then the row of y. Rows
/// that fit in registers are read only once.
template <class Layout, bool centered, class T>
__global__ void __launch_bounds__(block_threads) norm_forward(const NormForward<T> r) {
  constexpr int width = Layout::width;
  const std::int64_t i = Layout::row();
  if (i >= r.rows) return;
  const Row<T, Layout> x(r.x + i * r.n, r.n);
  const auto count = static_cast<float>(r.n);

  float mean = 0;
  if constexpr (centered) {
    float sum = 0;
    Layout::each(r.n, [&](int slot, int j) {
      const Floats<width> a = x.at(slot, j);
#pragma unroll
      for (int k = 0; k < width; ++k) sum += a.at[k];
    });
    mean = Layout::Team::sum(sum) / count;
  }
  float squares = 0;
  Layout::each(r.n, [&](int slot, int j) {
    const Floats<width> a = x.at(slot, j);
#pragma unroll
    for (int k = 0; k < width; ++k) squares += (a.at[k] - mean) * (a.at[k] - mean);
  });
  const float rstd = 1.0f / sqrtf(Layout::Team::sum(squares) / count + r.epsilon);

  Layout::each(r.n, [&](int slot, int j) {
    const Floats<width> a = x.at(slot, j), gain = load<width>(r.gain + j);
    Floats<width> y;
    if (r.bias) {
      y = load<width>(r.bias + j);
    } else {
#pragma unroll
      for (int k = 0; k < width; ++k) y.at[k] = 0;
    }
#pragma unroll
    for (int k = 0; k < width; ++k) {
      y.at[k] += (a.at[k] - mean) * rstd * (r.offset + gain.at[k]);
    }
    store(r.y + i * r.n + j, y);
  });
  if (Layout::Team::rank() == 0) {
    if constexpr (centered) r.mean[i] = mean;
    r.rstd[i] = rstd;
  }
}

/// Runs LayerNorm or RmsNorm. For RmsNorm, `mean` is empty.
template <bool centered, class Op>
void forward(Stream& stream, const Op& op, const Tensor& bias, const Tensor& mean, double offset) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const NormForward<T> rows{.x = op.x.template data<T>(),
                              .gain = op.gain.template data<float>(),
                              .bias = data_or_null<float>(bias),
                              .offset = static_cast<float>(offset),
                              .epsilon = static_cast<float>(op.epsilon),
                              .y = op.y.template data<T>(),
                              .mean = data_or_null<float>(mean),
                              .rstd = op.rstd.template data<float>(),
                              .rows = op.x.rows(),
                              .n = row_length(Op::name, op.x)};
    with_row_layout<T>(rows.n, on_16_bytes(rows.x, rows.y, rows.gain, rows.bias), [&](auto layout) {
      using Layout = decltype(layout);
      launch(stream, Layout::blocks(rows.rows), block_threads, 0, norm_forward<Layout, centered, T>,
             rows);
    });
  });
}

}  // namespace

void run(CudaBackend& backend, const LayerNorm& op) {
  forward<true>(backend.stream(), op, op.bias, op.mean, 0);
}
void run(CudaBackend& backend, const RmsNorm& op) {
  forward<false>(backend.stream(), op, {}, {}, op.offset);
}

}  // namespace longhand::cuda
