#include "core/contract/reinforce.h"

#include <cmath>

#include "cuda/attention/run.h"

/// Increases the attention weights of given pairs of a query and a key (core/contract/reinforce.h).
/// Softmax attention has already computed the output y. For one query and one head, a warp adds the
/// terms of all pairs of this query to y. Products are f32.
namespace longhand::cuda {
namespace {

constexpr int reinforce_threads = 128, reinforce_warps = reinforce_threads / warp_size;

struct Pairs {
  const std::int32_t* at;
  std::int64_t count;
  __device__ std::int32_t row(std::int64_t n) const { return at[2 * n]; }
  __device__ std::int32_t key(std::int64_t n) const { return at[2 * n + 1]; }
  __device__ bool begins(std::int64_t n) const { return n == 0 || row(n) != row(n - 1); }
};

/// Index of the segment that contains the query in row `row`.
__device__ __forceinline__ int segment_of(const SegmentsView& segments, std::int32_t row) {
  int low = 0, high = segments.count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (segments.query_begin[middle] <= row ? low : high) = middle;
  }
  return low;
}

/// For each head, there is one warp per pair of a query and a key. The pairs of a query are
/// adjacent. The warp of a query's first pair handles all pairs of the query, up to 32 at a time,
/// and the other warps return. The warp sets one bit of `growing` for each pair whose weight is
/// above the threshold. Then it sums v over the keys of these pairs and adds `amount` times the sum
/// to y.
__global__ void __launch_bounds__(reinforce_threads)
    reinforce_kernel(ScoresView scores, const float* log_sum, HeadsView v, Pairs pairs,
                     const float* amounts, float log_threshold, HeadsView y, std::int64_t rows) {
  const std::int64_t first = std::int64_t{blockIdx.x} * reinforce_warps + warp_index();
  const int head = static_cast<int>(blockIdx.y);
  const float amount = amounts[head];
  if (amount == 0 || first >= pairs.count || !pairs.begins(first)) return;
  const std::int32_t row = pairs.row(first);
  if (row < 0 || row >= rows) return;
  const SegmentView at = scores.segments[segment_of(scores.segments, row)];
  const int p = static_cast<int>(at.offset() + row - at.query), key_head = head / scores.group;
  const float factor = scores.scale * scores.tau_of(row, head);
  const float log_of_row = log_sum[std::int64_t{row} * scores.heads + head];

  for (std::int64_t n = first; n < pairs.count && pairs.row(n) == row;) {
    const std::int64_t begin = n;
    unsigned growing = 0;
    for (; n < pairs.count && n - begin < warp_size && pairs.row(n) == row; ++n) {
      const int j = pairs.key(n);
      if (j < 0 || !visible(scores, p, j)) continue;
      const float s = factor * warp_dot(scores.q, row, head, scores.k, at.key + j, key_head) +
                      scores.shift_of(at, p, head, j);
      if (fminf(s - log_of_row, 0.0f) > log_threshold) growing |= 1u << (n - begin);
    }
    if (growing == 0) continue;
    for (int c = lane_index(); c < v.width; c += warp_size) {
      float sum = 0;
      for (unsigned left = growing; left != 0; left &= left - 1) {
        const int j = pairs.key(begin + __ffs(static_cast<int>(left)) - 1);
        sum += load_one(v, at.key + j, key_head, c);
      }
      store_one(y, row, head, c, amount * sum);
    }
  }
}

}  // namespace

void run(CudaBackend& backend, const Reinforce& op) {
  const Pairs pairs{op.pairs.data<std::int32_t>(), op.pairs.rows()};
  HeadsView y = view(op.y);
  y.add = true;
  launch(backend.stream(),
         {(pairs.count + reinforce_warps - 1) / reinforce_warps, op.scores.q.heads},
         reinforce_threads, 0, &reinforce_kernel, view(op.scores), op.log_denominator.data<float>(),
         view(op.v), pairs, op.amounts.data<float>(), static_cast<float>(std::log(op.threshold)), y,
         op.scores.q.data.rows());
}

}  // namespace longhand::cuda
