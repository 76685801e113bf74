#include "core/contract/cumulate.h"

#include "cuda/attention/heads.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

constexpr int scan_threads = 256;

/// Computes running sums over the rows of each segment, with one block per segment and column. A
/// block computes the running sums of 256 rows at a time and adds the sum of all rows that it has
/// processed before.
__global__ void __launch_bounds__(scan_threads)
    cumulate_kernel(SegmentsView segments, const float* x, std::int64_t columns, bool reverse,
                    const float* before, float* y, bool add, float* after) {
  __shared__ double sums[scan_threads];
  const int segment = static_cast<int>(blockIdx.x), own = static_cast<int>(threadIdx.x);
  const std::int64_t column = blockIdx.y;
  const std::int64_t first = segments.key_begin[segment];
  const int rows = segments.key_length[segment];
  const std::int64_t end = std::int64_t{segment} * columns + column;
  double so_far = before ? static_cast<double>(before[end]) : 0.0;
  for (int begin = 0; begin < rows; begin += scan_threads) {
    const int t = begin + own;
    const std::int64_t at = (first + (reverse ? rows - 1 - t : t)) * columns + column;
    double sum = t < rows ? static_cast<double>(x[at]) : 0.0;
    sums[own] = sum;
    __syncthreads();
    for (int step = 1; step < scan_threads; step *= 2) {
      const double more = own >= step ? sums[own - step] : 0.0;
      __syncthreads();
      sums[own] = sum += more;
      __syncthreads();
    }
    if (t < rows) {
      const auto value = static_cast<float>(so_far + sum);
      y[at] = add ? y[at] + value : value;
    }
    so_far += sums[scan_threads - 1];
    __syncthreads();
  }
  if (after && own == 0) after[end] = static_cast<float>(so_far);
}

/// Computes LogCounts, the logarithm of the number of keys of each query, with one block per
/// segment.
__global__ void log_counts_kernel(SegmentsView segments, bool whole, std::int64_t columns,
                                  float* y) {
  const SegmentView at = segments[static_cast<int>(blockIdx.x)];
  for (std::int64_t i = threadIdx.x; i < at.queries * columns; i += blockDim.x) {
    const int n = whole ? at.keys : at.offset() + static_cast<int>(i / columns) + 1;
    y[at.query * columns + i] = logf(static_cast<float>(n > 2 ? n : 2));
  }
}

}  // namespace

void run(CudaBackend& backend, const Cumulate& op) {
  if (!op.y) return;
  const std::int64_t columns = op.x.columns();
  const bool covered = op.segments.tile() && op.segments.tokens() == op.x.rows();
  const Tensor& y = op.y.tensor;
  if (!op.y.add && !covered) backend.stream().zero(y.address(), y.bytes());
  launch(backend.stream(), {op.segments.count(), columns}, scan_threads, 0, &cumulate_kernel,
         view(op.segments, op.segments), op.x.data<float>(), columns, op.reverse,
         data_or_null<float>(op.before), y.data<float>(), op.y.add, data_or_null<float>(op.after));
}

void run(CudaBackend& backend, const LogCounts& op) {
  launch(backend.stream(), op.queries.count(), 256, 0, &log_counts_kernel,
         view(op.queries, op.keys), op.whole, op.y.columns(), op.y.data<float>());
}

}  // namespace longhand::cuda
