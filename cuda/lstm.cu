#include "core/contract/lstm.h"

#include "cuda/attention/run.h"
#include "cuda/cuda_backend.h"

/// The LSTM (core/contract/lstm.h) on a device. One block per sequence and head processes the
/// tokens in order. For each token, it reads the recurrent matrix U again, mostly from caches. The
/// gradient dU is computed at the end, as one matrix product over all tokens.
namespace longhand::cuda {
namespace {

constexpr int lstm_threads = 256;
constexpr int lstm_warps = lstm_threads / warp_size;

struct LstmTask {
  HeadsView x = {}, y = {}, dx = {};  // in the backward pass, y contains dy
  const float *u = nullptr, *before = nullptr;
  float *gates = nullptr, *cells = nullptr, *after = nullptr;
  // Used in the backward pass. da [heads, tokens, 4 n] is the gradient of a_t = x_t + U h_(t-1) for
  // each token t. earlier [heads, tokens, n] contains h_(t-1), the state before token t.
  float *da = nullptr, *earlier = nullptr;
  SegmentsView segments = {};
  std::int64_t tokens = 0;
  std::int32_t heads = 1, n = 1;

  __device__ float* gates_of(std::int64_t row, int head) const {
    return gates + (row * heads + head) * 4 * n;
  }
  __device__ float* cells_of(std::int64_t row, int head) const {
    return cells + (row * heads + head) * n;
  }
};

__device__ __forceinline__ float lstm_sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__global__ void __launch_bounds__(lstm_threads) lstm_kernel(LstmTask task) {
  const SegmentView at = task.segments[static_cast<int>(blockIdx.x)];
  const int head = static_cast<int>(blockIdx.y), n = task.n, own = static_cast<int>(threadIdx.x);
  const float* const u = task.u + std::int64_t{head} * 4 * n * n;
  const std::int64_t state = (std::int64_t{blockIdx.x} * task.heads + head) * 2 * n;
  float* const h = shared_memory<float>();
  float *const c = h + n, *const a = c + n;
  for (int j = own; j < 2 * n; j += lstm_threads) h[j] = task.before ? task.before[state + j] : 0;
  __syncthreads();
  for (int t = 0; t < at.keys; ++t) {
    const std::int64_t row = at.key + t;
    for (int e = warp_index(); e < 4 * n; e += lstm_warps) {
      float sum = 0;
      for (int j = lane_index(); j < n; j += warp_size) sum += u[std::int64_t{e} * n + j] * h[j];
      sum = warp_sum(sum);
      if (lane_index() == 0) {
        const float z = sum + load_one(task.x, row, head, e);
        a[e] = e < 3 * n ? lstm_sigmoid(z) : tanhf(z);
      }
    }
    __syncthreads();
    for (int j = own; j < n; j += lstm_threads) {
      c[j] = a[n + j] * c[j] + a[j] * a[3 * n + j];
      h[j] = a[2 * n + j] * tanhf(c[j]);
      store_one(task.y, row, head, j, h[j]);
      if (!task.gates) continue;
      for (int k = 0; k < 4; ++k) task.gates_of(row, head)[k * n + j] = a[k * n + j];
      task.cells_of(row, head)[j] = c[j];
    }
    __syncthreads();
  }
  if (!task.after) return;
  for (int j = own; j < 2 * n; j += lstm_threads) task.after[state + j] = h[j];
}

__global__ void __launch_bounds__(lstm_threads) lstm_backward_kernel(LstmTask task) {
  const SegmentView at = task.segments[static_cast<int>(blockIdx.x)];
  const int head = static_cast<int>(blockIdx.y), n = task.n, own = static_cast<int>(threadIdx.x);
  const float* const u = task.u + std::int64_t{head} * 4 * n * n;
  // Tokens are processed from the last to the first. Before token t is processed, the array `a`
  // contains the gradient of x_(t+1) + U h_t (core/contract/lstm.h), computed for token t + 1.
  float* const a = shared_memory<float>();
  float *const dc = a + 4 * n, *const dh = dc + n;
  for (int j = own; j < 5 * n; j += lstm_threads) a[j] = 0;
  __syncthreads();
  for (int t = at.keys - 1; t >= 0; --t) {
    const std::int64_t row = at.key + t, place = std::int64_t{head} * task.tokens + row;
    for (int j = own; j < n; j += lstm_threads) {
      float sum = load_one(task.y, row, head, j);
      for (int e = 0; e < 4 * n; ++e) sum += u[std::int64_t{e} * n + j] * a[e];
      dh[j] = sum;
    }
    __syncthreads();
    for (int j = own; j < n; j += lstm_threads) {
      const float* const gates = task.gates_of(row, head);
      const float i = gates[j], f = gates[n + j], o = gates[2 * n + j], g = gates[3 * n + j];
      const float tanh_c = tanhf(task.cells_of(row, head)[j]);
      const float old = t > 0 ? task.cells_of(row - 1, head)[j] : 0.0f;
      const float now = dc[j] + dh[j] * o * (1 - tanh_c * tanh_c);
      const float parts[4] = {now * g * i * (1 - i), now * old * f * (1 - f),
                              dh[j] * tanh_c * o * (1 - o), now * i * (1 - g * g)};
      for (int k = 0; k < 4; ++k) {
        a[k * n + j] = parts[k];
        task.da[place * 4 * n + k * n + j] = parts[k];
        if (task.dx) store_one(task.dx, row, head, k * n + j, parts[k]);
      }
      dc[j] = now * f;
      task.earlier[place * n + j] =
          t > 0 ? task.gates_of(row - 1, head)[2 * n + j] * tanhf(old) : 0.0f;
    }
    __syncthreads();
  }
}

std::size_t lstm_shared(const LstmTask& task) {
  return sizeof(float) * 6 * static_cast<std::size_t>(task.n);
}

void launch_lstm(CudaBackend& backend, void (*kernel)(LstmTask), const LstmTask& task) {
  launch(backend.stream(), {task.segments.count, task.heads}, lstm_threads, lstm_shared(task),
         kernel, task);
}

float* floats_or_null(const Tensor& x) { return x ? x.data<float>() : nullptr; }

}  // namespace

void run(CudaBackend& backend, const Lstm& op) {
  launch_lstm(backend, &lstm_kernel,
              {.x = view(op.x),
               .y = view(op.y),
               .u = op.u.data<float>(),
               .before = pointer(op.before),
               .gates = floats_or_null(op.gates),
               .cells = floats_or_null(op.cells),
               .after = floats_or_null(op.after),
               .segments = view(op.segments, op.segments),
               .heads = static_cast<std::int32_t>(op.y.heads),
               .n = static_cast<std::int32_t>(op.y.width)});
}

void run(CudaBackend& backend, const LstmBackward& op) {
  const std::int64_t tokens = op.dy.data.rows(), heads = op.dy.heads, n = op.dy.width;
  const Tensor da(backend, {heads, tokens, 4 * n}, DType::f32);
  const Tensor earlier(backend, {heads, tokens, n}, DType::f32);
  launch_lstm(backend, &lstm_backward_kernel,
              {.y = view(op.dy),
               .dx = view(op.dx),
               .u = op.u.data<float>(),
               .gates = op.gates.data<float>(),
               .cells = op.cells.data<float>(),
               .da = da.data<float>(),
               .earlier = earlier.data<float>(),
               .segments = view(op.segments, op.segments),
               .tokens = tokens,
               .heads = static_cast<std::int32_t>(heads),
               .n = static_cast<std::int32_t>(n)});
  if (!op.du) return;
  backend.run(Matmul{.a = da,
                     .b = earlier,
                     .transpose_a = true,
                     .c = op.du.tensor.reshape({heads, 4 * n, n}),
                     .beta = op.du.add ? 1.0 : 0.0,
                     .math = Math::exact});
}

}  // namespace longhand::cuda
