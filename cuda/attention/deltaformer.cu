#include <algorithm>

#include "core/contract/deltaformer.h"
#include "cuda/attention/run.h"

/// DeltaFormer (core/contract/deltaformer.h), row by row. A block computes one head of one segment.
/// It processes the rows one after another, and the keys of a row 128 at a time. Each thread
/// computes the score of one key, and then columns of the weighted sum of the earlier outputs. The
/// backward pass first computes W = dv, the gradients of the values, in the same way, but from the
/// last row to the first. Then all rows of dq and dk are independent of one another. Scratch memory
/// is O(tokens). Products and sums are f32 in every math mode.
namespace longhand::cuda {
namespace {

// Number of blocks per segment and head in the kernel for dq and dk, whose rows are independent of
// one another.
constexpr int row_splits = 16;

struct DeltaFormerTask {
  HeadsView q = {}, k = {}, v = {}, y = {}, read = {}, earlier = {}, dy = {};
  HeadsView dq = {}, dk = {}, dv = {};
  // gradient of each token's value, times the token's gain (DeltaFormer::gain), in f32
  HeadsView w = {};
  SegmentsView segments = {};
  const float* gain = nullptr;
  float *log_sum = nullptr, *dots = nullptr, *dgain = nullptr;
  bool add_dgain = false;
  float scale = 1;
  std::int32_t heads = 1;
};

/// The weights of 128 keys (`weights`), and scratch memory for reductions over the block's threads
/// (`warps`).
struct BlockScratch {
  float weights[attention_threads];
  float warps[32];
};

__device__ __forceinline__ float row_dot(const HeadsView& x, std::int64_t i, const HeadsView& y,
                                         std::int64_t j, int head) {
  float sum = 0;
  for (int c = 0; c < x.width; ++c) sum += load_one(x, i, head, c) * load_one(y, j, head, c);
  return sum;
}

/// The maximum of x over the threads of a block, returned to all of them.
__device__ __forceinline__ float block_max(float x, float* scratch) {
  for (int step = warp_size / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(full_warp, x, step));
  }
  if (lane_index() == 0) scratch[warp_index()] = x;
  __syncthreads();
  const int warps = static_cast<int>(blockDim.x) / warp_size;
  x = scratch[lane_index() < warps ? lane_index() : 0];
  for (int step = warp_size / 2; step > 0; step /= 2) {
    x = fmaxf(x, __shfl_xor_sync(full_warp, x, step));
  }
  return x;
}

__global__ void __launch_bounds__(attention_threads) deltaformer_forward(DeltaFormerTask task) {
  __shared__ BlockScratch space;
  float* const sums = shared_memory<float>();  // weighted sum of earlier outputs y, [v.width]
  const int head = static_cast<int>(blockIdx.x) % task.heads;
  const SegmentView at = task.segments[static_cast<int>(blockIdx.x) / task.heads];
  const int thread = static_cast<int>(threadIdx.x), width = task.v.width;
  for (int t = 0; t < at.queries; ++t) {
    const int keys = at.offset() + t;  // number of keys before query t
    const std::int64_t row = at.query + t;
    float highest = -__builtin_inff(), sum = 0;
    for (int c = thread; c < width; c += attention_threads) sums[c] = 0;
    for (int first = 0; first < keys; first += attention_threads) {
      const int count = min(attention_threads, keys - first), j = first + thread;
      const float s = thread < count ? task.scale * row_dot(task.q, row, task.k, at.key + j, head)
                                     : -__builtin_inff();
      __syncthreads();
      const float most = fmaxf(highest, block_max(s, space.warps));
      const float shrink = expf(highest - most), p = expf(s - most);
      highest = most;
      space.weights[thread] = p;
      __syncthreads();
      sum = sum * shrink + block_sum(p, space.warps);
      for (int c = thread; c < width; c += attention_threads) {
        float z = sums[c] * shrink;
        for (int i = 0; i < count; ++i) {
          const int key = first + i;
          const float y = key < at.offset()
                              ? load_one(task.earlier, at.key + key, head, c)
                              : load_one(task.y, at.query + key - at.offset(), head, c);
          z += space.weights[i] * y;
        }
        sums[c] = z;
      }
    }
    const std::int64_t number = row * task.heads + head;
    const float share = keys > 0 ? 1 / sum : 0, gain = task.gain[number];
    for (int c = thread; c < width; c += attention_threads) {
      const float z = sums[c] * share;
      store_one(task.y, row, head, c, load_one(task.v, at.key + keys, head, c) + gain * z);
      if (task.read) store_one(task.read, row, head, c, z);
    }
    if (task.log_sum && thread == 0) task.log_sum[number] = keys > 0 ? highest + logf(sum) : 0;
    __syncthreads();  // the next row reads y of this row
  }
}

/// The attention weight P_ij of query i and an earlier key j of the same segment.
__device__ __forceinline__ float weight_of(const DeltaFormerTask& task, const SegmentView& at,
                                           int i, int j, int head) {
  const float s = task.scale * row_dot(task.q, at.query + i, task.k, at.key + j, head);
  return expf(s - task.log_sum[(at.query + i) * task.heads + head]);
}

__global__ void __launch_bounds__(attention_threads) deltaformer_solve(DeltaFormerTask task) {
  __shared__ BlockScratch space;
  float* const sums = shared_memory<float>();
  const int head = static_cast<int>(blockIdx.x) % task.heads;
  const SegmentView at = task.segments[static_cast<int>(blockIdx.x) / task.heads];
  const int thread = static_cast<int>(threadIdx.x), width = task.y.width;
  for (int j = at.keys - 1; j >= 0; --j) {
    for (int c = thread; c < width; c += attention_threads) sums[c] = 0;
    for (int first = j + 1; first < at.keys; first += attention_threads) {
      const int count = min(attention_threads, at.keys - first);
      __syncthreads();
      if (thread < count) {
        space.weights[thread] = weight_of(task, at, first + thread, j, head);
      }
      __syncthreads();
      for (int c = thread; c < width; c += attention_threads) {
        float b = sums[c];
        for (int i = 0; i < count; ++i) {
          b += space.weights[i] * load_one(task.w, at.query + first + i, head, c);
        }
        sums[c] = b;
      }
    }
    const std::int64_t row = at.query + j, number = row * task.heads + head;
    const float gain = task.gain[number];
    float w_z = 0;
    for (int c = thread; c < width; c += attention_threads) {
      const float w = load_one(task.dy, row, head, c) + sums[c];
      w_z += w * load_one(task.read, row, head, c);
      if (task.dv) store_one(task.dv, at.key + j, head, c, w);
      store_one(task.w, row, head, c, gain * w);
    }
    __syncthreads();
    w_z = block_sum(w_z, space.warps);
    if (thread == 0) {
      task.dots[number] = gain * w_z;
      if (task.dgain) task.dgain[number] = (task.add_dgain ? task.dgain[number] : 0) + w_z;
    }
    __syncthreads();
  }
}

/// Computes rows of dq, each a sum over earlier keys, or rows of dk, each a sum over later queries.
template <bool of_keys>
__global__ void __launch_bounds__(attention_threads) deltaformer_scores(DeltaFormerTask task) {
  __shared__ BlockScratch space;
  float* const sums = shared_memory<float>();
  const int head = static_cast<int>(blockIdx.x) % task.heads;
  const SegmentView at = task.segments[static_cast<int>(blockIdx.x) / task.heads];
  const int thread = static_cast<int>(threadIdx.x), width = task.q.width;
  for (int r = static_cast<int>(blockIdx.y); r < at.keys; r += row_splits) {
    for (int c = thread; c < width; c += attention_threads) sums[c] = 0;
    const int begin = of_keys ? r + 1 : 0, end = of_keys ? at.keys : r;
    for (int first = begin; first < end; first += attention_threads) {
      const int count = min(attention_threads, end - first);
      __syncthreads();
      if (thread < count) {
        const int i = of_keys ? first + thread : r, j = of_keys ? r : first + thread;
        const std::int64_t query = at.query + i;
        const float w_y = row_dot(task.w, query, task.y, at.query + j, head);
        // Query 1 has only one earlier key. Its weight is 1 whatever its score is, so the gradient
        // of this score must be exactly 0.
        space.weights[thread] = i == 1 ? 0
                                       : task.scale * weight_of(task, at, i, j, head) *
                                             (w_y - task.dots[query * task.heads + head]);
      }
      __syncthreads();
      for (int c = thread; c < width; c += attention_threads) {
        float sum = sums[c];
        for (int n = 0; n < count; ++n) {
          const float x = of_keys ? load_one(task.q, at.query + first + n, head, c)
                                  : load_one(task.k, at.key + first + n, head, c);
          sum += space.weights[n] * x;
        }
        sums[c] = sum;
      }
    }
    const HeadsView& to = of_keys ? task.dk : task.dq;
    for (int c = thread; c < width; c += attention_threads) {
      store_one(to, (of_keys ? at.key : at.query) + r, head, c, sums[c]);
    }
    __syncthreads();
  }
}

template <class Op>
DeltaFormerTask task_of(const Op& op) {
  return {.q = view(op.q),
          .k = view(op.k),
          .segments = view(op.queries, op.keys),
          .scale = static_cast<float>(op.scale),
          .heads = static_cast<std::int32_t>(op.q.heads)};
}

std::size_t row_bytes(std::int64_t width) {
  return sizeof(float) * static_cast<std::size_t>(width);
}

}  // namespace

void run(CudaBackend& backend, const DeltaFormer& op) {
  DeltaFormerTask task = task_of(op);
  task.v = view(op.v);
  task.y = view(op.y);
  task.gain = op.gain.data<float>();
  if (op.earlier) task.earlier = view(op.earlier);
  if (op.read) task.read = view(op.read);
  if (op.log_denominator) task.log_sum = op.log_denominator.data<float>();
  launch(backend.stream(), op.queries.count() * op.y.heads, attention_threads,
         row_bytes(op.v.width), &deltaformer_forward, task);
}

void run(CudaBackend& backend, const DeltaFormerBackward& op) {
  const std::int64_t rows = op.q.data.rows(), heads = op.y.heads;
  const Tensor w(backend, {rows, heads * op.y.width}, DType::f32);
  const Tensor dots(backend, {rows, heads}, DType::f32);
  DeltaFormerTask task = task_of(op);
  task.y = view(op.y);
  task.read = view(op.read);
  task.dy = view(op.dy);
  task.w = view(Heads{w, 0, heads, op.y.width});
  task.gain = op.gain.data<float>();
  task.log_sum = op.log_denominator.data<float>();
  task.dots = dots.data<float>();
  if (op.dv) task.dv = view(op.dv);
  if (op.dq) task.dq = view(op.dq);
  if (op.dk) task.dk = view(op.dk);
  if (op.dgain) task.dgain = op.dgain.tensor.data<float>();
  task.add_dgain = op.dgain.add;
  const std::int64_t blocks = op.queries.count() * heads;
  launch(backend.stream(), blocks, attention_threads, row_bytes(op.y.width), &deltaformer_solve,
         task);
  const Grid grid(blocks, row_splits);
  const std::size_t bytes = row_bytes(op.q.width);
  if (op.dq)
    launch(backend.stream(), grid, attention_threads, bytes, &deltaformer_scores<false>, task);
  if (op.dk)
    launch(backend.stream(), grid, attention_threads, bytes, &deltaformer_scores<true>, task);
}

}  // namespace longhand::cuda
