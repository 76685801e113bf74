#include "core/contract/convolution.h"

#include "cuda/attention/run.h"

/// The kernels of ShortConvolution. Each block computes up to 64 consecutive tokens of one segment,
/// and each of its threads computes one column of these tokens.
namespace longhand::cuda {
namespace {

constexpr int convolution_threads = 128;
constexpr int convolution_rows = 64;
constexpr int convolution_taps = static_cast<int>(ShortConvolution::most_taps);

struct ConvolutionTask {
  HeadsView x = {}, y = {}, dx = {};  // in the backward pass, y contains dy
  const float *weight = nullptr, *before = nullptr;
  // `after` receives the last taps - 1 inputs of each segment. `parts` receives dweight, summed
  // over each tile of tokens. Both may be null.
  float *after = nullptr, *parts = nullptr;
  SegmentsView segments = {};
  std::int32_t columns = 0, taps = 1;
};

/// The input x of column c at token t of a segment. For t < 0, before the first token, the input is
/// read from task.before, or is 0 if task.before is null.
__device__ __forceinline__ float convolution_input(const ConvolutionTask& task,
                                                   const SegmentView& at, int segment, int t,
                                                   int c) {
  if (t >= 0) return load_one(task.x, at.key + t, 0, c);
  const std::int64_t row = std::int64_t{segment} * (task.taps - 1) + task.taps - 1 + t;
  return task.before ? task.before[row * task.columns + c] : 0.0f;
}

__global__ void __launch_bounds__(convolution_threads) convolution_kernel(ConvolutionTask task) {
  const Tile tile =
      tile_at(task.segments.key_begin, task.segments.count, convolution_rows, blockIdx.x);
  const SegmentView at = task.segments[tile.segment];
  const int c = static_cast<int>(blockIdx.y * convolution_threads + threadIdx.x);
  if (c >= task.columns) return;
  for (int t = tile.first; t < min(tile.first + convolution_rows, at.keys); ++t) {
    float sum = 0;
    for (int i = 0; i < task.taps; ++i) {
      sum += task.weight[std::int64_t{i} * task.columns + c] *
             convolution_input(task, at, tile.segment, t - i, c);
    }
    store_one(task.y, at.key + t, 0, c, sum);
  }
}

/// Stores the last taps - 1 inputs of each segment in task.after. This memory may be the same as
/// task.before, because each input is read before it is overwritten.
__global__ void __launch_bounds__(convolution_threads) convolution_tails(ConvolutionTask task) {
  const int segment = static_cast<int>(blockIdx.x);
  const SegmentView at = task.segments[segment];
  const int c = static_cast<int>(blockIdx.y * convolution_threads + threadIdx.x);
  if (c >= task.columns) return;
  const int tail = task.taps - 1;
  for (int i = 0; i < tail; ++i) {
    const float x = convolution_input(task, at, segment, at.keys - tail + i, c);
    task.after[(std::int64_t{segment} * tail + i) * task.columns + c] = x;
  }
}

__global__ void __launch_bounds__(convolution_threads) convolution_backward(ConvolutionTask task) {
  const Tile tile =
      tile_at(task.segments.key_begin, task.segments.count, convolution_rows, blockIdx.x);
  const SegmentView at = task.segments[tile.segment];
  const int c = static_cast<int>(blockIdx.y * convolution_threads + threadIdx.x);
  if (c >= task.columns) return;
  float sums[convolution_taps] = {};
  for (int t = tile.first; t < min(tile.first + convolution_rows, at.keys); ++t) {
    const float own = load_one(task.y, at.key + t, 0, c);
    float sum = 0;
#pragma unroll
    for (int i = 0; i < convolution_taps; ++i) {
      if (i >= task.taps) break;
      if (t + i < at.keys) {
        sum += task.weight[std::int64_t{i} * task.columns + c] *
               load_one(task.y, at.key + t + i, 0, c);
      }
      if (t - i >= 0) sums[i] += own * load_one(task.x, at.key + t - i, 0, c);
    }
    if (task.dx) store_one(task.dx, at.key + t, 0, c, sum);
  }
  if (!task.parts) return;
#pragma unroll
  for (int i = 0; i < convolution_taps; ++i) {
    if (i < task.taps) {
      task.parts[(std::int64_t{blockIdx.x} * task.taps + i) * task.columns + c] = sums[i];
    }
  }
}

/// Returns a view of x in which all columns form a single head.
HeadsView as_one_head(HeadsView x, std::int64_t columns) {
  x.width = static_cast<std::int32_t>(columns);
  return x;
}

template <class Op>
ConvolutionTask convolution_task_of(const Op& op) {
  const std::int64_t n = op.x.heads * op.x.width;
  return {.x = as_one_head(view(op.x), n),
          .weight = op.weight.template data<float>(),
          .segments = view(op.segments, op.segments),
          .columns = static_cast<std::int32_t>(n),
          .taps = static_cast<std::int32_t>(op.weight.rows())};
}

std::int64_t convolution_columns(std::int64_t columns) {
  return (columns + convolution_threads - 1) / convolution_threads;
}

}  // namespace

void run(CudaBackend& backend, const ShortConvolution& op) {
  ConvolutionTask task = convolution_task_of(op);
  task.y = view(Heads{op.y, 0, 1, task.columns});
  task.before = pointer(op.before);
  task.after = op.after ? op.after.data<float>() : nullptr;
  const std::int64_t slots = tile_slots(op.y.rows(), op.segments.count(), convolution_rows);
  if (op.y.rows() > 0) {
    launch(backend.stream(), {slots, convolution_columns(task.columns)}, convolution_threads, 0,
           &convolution_kernel, task);
  }
  if (op.after) {
    launch(backend.stream(), {op.segments.count(), convolution_columns(task.columns)},
           convolution_threads, 0, &convolution_tails, task);
  }
}

void run(CudaBackend& backend, const ShortConvolutionBackward& op) {
  ConvolutionTask task = convolution_task_of(op);
  task.y = view(Heads{op.dy, 0, 1, task.columns});
  task.dx = as_one_head(view(op.dx), task.columns);
  const std::int64_t slots = tile_slots(op.dy.rows(), op.segments.count(), convolution_rows);
  const std::int64_t numbers = op.weight.size();
  Tensor parts;
  if (op.dweight) {
    parts = Tensor(backend, {slots, numbers}, DType::f32);
    task.parts = parts.data<float>();
  }
  if (op.dy.rows() > 0) {
    launch(backend.stream(), {slots, convolution_columns(task.columns)}, convolution_threads, 0,
           &convolution_backward, task);
  } else if (parts) {
    backend.stream().zero(parts.address(), parts.bytes());
  }
  if (op.dweight) add_up(backend.stream(), parts.data<float>(), slots, 1, op.dweight);
}

}  // namespace longhand::cuda
