#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// Computes dots[row, head] = x . (y + residue), where `residue` is the rounding error of y, or
/// empty. The entries of x are rounded as `Product` rounds them. One warp computes one dot product.
template <class Product>
__global__ void row_dots_kernel(HeadsView x, HeadsView y, HeadsView residue, std::int64_t rows,
                                std::int32_t heads, float* dots) {
  const auto rounded = [](float entry) { return to_float(Product::element(entry)); };
  const std::int64_t all = rows * heads;
  for (std::int64_t i = thread_in_grid() / warp_size; i < all; i += threads_in_grid() / warp_size) {
    const std::int64_t row = i / heads;
    const auto head = static_cast<int>(i % heads);
    float dot = warp_dot(x, row, head, y, row, head, rounded);
    if (residue) dot += warp_dot(x, row, head, residue, row, head, rounded);
    if (lane_index() == 0) dots[i] = dot;
  }
}

/// Sums `parts`, [outer, results, inner], over its first and last axes. One block computes one
/// result.
__global__ void add_up_kernel(const float* parts, std::int64_t outer, std::int64_t inner,
                              float* result, bool add) {
  __shared__ float sums[32];
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < outer * inner; i += blockDim.x) {
    sum += parts[(i / inner * gridDim.x + blockIdx.x) * inner + i % inner];
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) result[blockIdx.x] = add ? result[blockIdx.x] + sum : sum;
}

/// Sums parts[s * entries + i] over all slices s, for each i < entries. The sum replaces y[i] or,
/// if `add` is set, is added to y[i].
__global__ void add_slices_kernel(const float* parts, int slices, std::int64_t entries, float* y,
                                  bool add) {
  for (std::int64_t i = thread_in_grid(); i < entries; i += threads_in_grid()) {
    float sum = 0;
    for (int s = 0; s < slices; ++s) sum += parts[s * entries + i];
    y[i] = add ? y[i] + sum : sum;
  }
}

/// Computes the gradient of each head's sink b, a score without a value:
///   db = -sum_i exp(b - log_sum_i) dots_i, where dots_i is dy_i . y_i in softmax attention.
/// One block computes one head.
__global__ void sink_kernel(const float* sink, const float* log_sum, const float* dots,
                            std::int64_t rows, int heads, float* result, bool add) {
  __shared__ float sums[32];
  const int head = static_cast<int>(blockIdx.x);
  float sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x) {
    const std::int64_t at = i * heads + head;
    sum -= expf(sink[head] - log_sum[at]) * dots[at];
  }
  sum = block_sum(sum, sums);
  if (threadIdx.x == 0) result[head] = add ? result[head] + sum : sum;
}

}  // namespace

void add_up(Stream& stream, const float* parts, std::int64_t outer, std::int64_t inner,
            const Target& result) {
  launch(stream, result.tensor.size(), 256, 0, &add_up_kernel, parts, outer, inner,
         result.tensor.data<float>(), result.add);
}

void add_slices(CudaBackend& backend, const float* parts, int slices, const Target& result) {
  const std::int64_t entries = result.tensor.size();
  launch(backend.stream(), backend.blocks_for(entries, 256), 256, 0, &add_slices_kernel, parts,
         slices, entries, result.tensor.data<float>(), result.add);
}

Tensor row_dots(CudaBackend& backend, Math math, const Heads& x, const Heads& y,
                const Heads& residue) {
  const std::int64_t rows = x.data.rows();
  const Tensor dots(backend, {std::max<std::int64_t>(1, rows), x.heads}, DType::f32);
  visit_math(math, x.data.dtype(), [&](auto product) {
    launch(backend.stream(), backend.blocks_for(rows * x.heads * warp_size, 256), 256, 0,
           &row_dots_kernel<decltype(product)>, view(x), view(y), view(residue), rows,
           static_cast<std::int32_t>(x.heads), dots.data<float>());
  });
  return dots;
}

void attention_gradients(CudaBackend& backend, Math math, const Scores& scores,
                         const HeadsTarget& dq, const HeadsTarget& dk, const HeadsTarget& dv,
                         const ScoreTargets& dscores, const Tensor& sink, const Target& dsink,
                         GradientTask task) {
  task.dq = view(dq);
  task.dk = view(dk);
  task.dv = view(dv);
  Tensor row_sums;
  if (dscores.decay) {
    row_sums = Tensor(backend, {std::max<std::int64_t>(1, scores.q.data.rows()), scores.q.heads},
                      DType::f32);
    task.row_sums = row_sums.data<float>();
    task.dshift = dscores.decay.tensor.data<float>();
    task.add_shift = dscores.decay.add;
  }
  if (dq || dscores.multiplier || dscores.decay) {
    launch_query_gradients(backend, math, scores, dscores.multiplier, task);
  }
  if (dk || dv || dscores.decay) launch_key_gradients(backend, math, scores, task);
  if (!dsink) return;
  launch(backend.stream(), scores.q.heads, 256, 0, &sink_kernel, sink.data<float>(), task.log_sum,
         task.row_dots, scores.q.data.rows(), static_cast<int>(scores.q.heads),
         dsink.tensor.data<float>(), dsink.add);
}

}  // namespace longhand::cuda
