#include "core/contract/delta.h"

#include <algorithm>

#include "core/contract/cumulate.h"
#include "cuda/attention/run.h"
#include "cuda/team.h"

/// The gated delta rule, token by token. The memory S [width, v_width] of each key head is held in
/// registers. The symbols are those of core/contract/delta.h. The columns of S are independent of
/// each other, so a few lanes hold one column [width] and process the tokens in order. The forward
/// pass and the first backward pass, which computes du_t = dS_t^T k_t, work like this. Once du is
/// known, the rows of S are independent as well. In two more backward passes, which compute dk and
/// dq, a few lanes hold one row [v_width]. Scratch memory is O(tokens).
///
/// A row or column of S or dS that a few lanes hold is called a line. Vectors that all lines of a
/// thread block read are first copied to shared memory.
///
/// Products and sums are f32 in every math mode.
namespace longhand::cuda {
namespace {

constexpr int delta_threads = 128;
constexpr int delta_together = 16;                // maximum number of tokens in shared memory
constexpr std::int64_t delta_shared = 96 * 1024;  // maximum bytes of shared memory per block
constexpr std::int64_t widest_line = 1024;

struct DeltaTask {
  HeadsView q = {}, k = {}, v = {}, y = {}, error = {};
  HeadsView dy = {}, dq = {}, dk = {}, dv = {};
  // f32 [tokens, v_width] per key head: the gradient of beta_t w_t, where w_t is the row of `error`
  // for token t
  HeadsView du = {};
  // f32 [tokens, width] per key head. DeltaLaterStep stores the part of dk that comes from later
  // tokens. DeltaEarlierStep then overwrites each row by terms whose sum is dc_t, the number of
  // token t from which ddecay is computed.
  HeadsView sums = {};
  const float *beta = nullptr, *decay = nullptr, *before = nullptr;
  float* after = nullptr;
  SegmentsView segments = {};
  float scale = 1;
  std::int32_t heads = 1, group = 1;
};

/// One lane's part of a line, which is a row or column of the memory S or of its gradient. Lane l
/// of the `lanes` lanes of a line holds the entries l, l + lanes, l + 2 lanes, ...
template <int lanes, int each>
struct Line {
  static constexpr int stride = lanes * each;
  float at[each];

  __device__ __forceinline__ static int lane() { return Lanes<lanes>::rank(); }
  __device__ __forceinline__ float dot(const float* x) const {
    float sum = 0;
#pragma unroll
    for (int e = 0; e < each; ++e) sum += at[e] * x[e * lanes + lane()];
    return Lanes<lanes>::sum(sum);
  }
  __device__ __forceinline__ static float dot(const float* x, const float* y) {
    float sum = 0;
#pragma unroll
    for (int e = 0; e < each; ++e) sum += x[e * lanes + lane()] * y[e * lanes + lane()];
    return Lanes<lanes>::sum(sum);
  }
  /// this = keep * this + factor * x
  __device__ __forceinline__ void mix(float keep, float factor, const float* x) {
#pragma unroll
    for (int e = 0; e < each; ++e) at[e] = keep * at[e] + factor * x[e * lanes + lane()];
  }
};

/// Vectors of consecutive tokens of one segment and key head, in shared memory. A row array
/// contains all entries of each token's vector. A column array contains only the entries that
/// belong to the lines of the thread block, which are rows or columns of the memory S.
struct DeltaBatch {
  float *rows, *columns, *kept, *beta;
  int together, stride, lines;
  int first_line;      // index in S of the first line (row or column) of the thread block
  std::int64_t token;  // row of the batch's first token in q, k and v
  int count, head;

  __device__ const float* row(int array, int t) const {
    return rows + (array * together + t) * stride;
  }
  __device__ float column(int array, int t, int line) const {
    return columns[(array * together + t) * lines + line];
  }
  /// Copies the rows of x for the batch's tokens to a row array. `array` is the index of the row
  /// array. Each row is multiplied by `factor` and, if `by_beta` is true, by the token's beta.
  __device__ void stage_rows(int array, const HeadsView& x, int of_head, float factor,
                             bool by_beta = false) const {
    for (int i = static_cast<int>(threadIdx.x); i < count * stride; i += delta_threads) {
      const int t = i / stride, e = i % stride;
      const float times = by_beta ? factor * beta[t] : factor;
      rows[(array * together + t) * stride + e] =
          e < x.width ? times * load_one(x, token + t, of_head, e) : 0.0f;
    }
  }
  __device__ void stage_columns(int array, const HeadsView& x, int of_head, float factor) const {
    for (int i = static_cast<int>(threadIdx.x); i < count * lines; i += delta_threads) {
      const int t = i / lines, e = first_line + i % lines;
      columns[(array * together + t) * lines + i % lines] =
          e < x.width ? factor * load_one(x, token + t, of_head, e) : 0.0f;
    }
  }
  /// Stores exp(decay) and beta of the batch's tokens in `kept` and `beta`. A barrier must follow
  /// before stage_rows() multiplies by beta.
  __device__ void stage_numbers(const DeltaTask& task) const {
    for (int t = static_cast<int>(threadIdx.x); t < count; t += delta_threads) {
      const std::int64_t at = (token + t) * task.heads + head;
      kept[t] = task.decay ? expf(task.decay[at]) : 1.0f;
      beta[t] = task.beta[at];
    }
  }
};

/// The place of a line, a row or column of the memory S. One group of lanes holds the whole line.
/// `own` is the line's index in the thread block, and `number` is its index in S.
struct LinePlace {
  int own, number;
  bool writes;  // true if the line exists and this lane writes its result
};

/// The forward pass, token by token: computes one column of the memory S, of the outputs y, and of
/// the errors w (v minus the value that the decayed S stores for k).
struct DeltaForwardStep {
  static constexpr bool reverse = false, remembers = true;
  // stage() fills row arrays and column arrays (DeltaBatch) for one key head and for the query
  // heads that read it. row_arrays, column_arrays: numbers of arrays for the key head. group_rows,
  // group_columns: true if each of the query heads also has a row array or a column array.
  static constexpr int row_arrays = 1, column_arrays = 1;
  static constexpr bool group_rows = true, group_columns = false;
  __device__ static int lines(const DeltaTask& task) { return task.v.width; }

  __device__ static void stage(const DeltaTask& task, const DeltaBatch& b) {
    b.stage_rows(0, task.k, b.head, task.scale);
    for (int g = 0; g < task.group; ++g) {
      b.stage_rows(1 + g, task.q, b.head * task.group + g, task.scale);
    }
    b.stage_columns(0, task.v, b.head, 1.0f);
  }
  template <class L>
  __device__ static void step(const DeltaTask& task, const DeltaBatch& b, int t, L& line,
                              const LinePlace& at) {
    const float* const k = b.row(0, t);
    const float w = b.column(0, t, at.own) - b.kept[t] * line.dot(k);
    line.mix(b.kept[t], b.beta[t] * w, k);
    for (int g = 0; g < task.group; ++g) {
      const float y = line.dot(b.row(1 + g, t));
      if (at.writes) store_one(task.y, b.token + t, b.head * task.group + g, at.number, y);
    }
    if (at.writes && task.error) store_one(task.error, b.token + t, b.head, at.number, w);
  }
};

/// Computes one column of dv and of du_t = dS_t^T k_t, from the last token to the first. dS is the
/// gradient of the memory S.
struct DeltaWrittenStep {
  static constexpr bool reverse = true, remembers = false;
  static constexpr int row_arrays = 1, column_arrays = 0;
  static constexpr bool group_rows = true, group_columns = true;
  __device__ static int lines(const DeltaTask& task) { return task.dy.width; }

  __device__ static void stage(const DeltaTask& task, const DeltaBatch& b) {
    b.stage_rows(0, task.k, b.head, task.scale);
    for (int g = 0; g < task.group; ++g) {
      b.stage_rows(1 + g, task.q, b.head * task.group + g, task.scale);
      b.stage_columns(g, task.dy, b.head * task.group + g, 1.0f);
    }
  }
  template <class L>
  __device__ static void step(const DeltaTask& task, const DeltaBatch& b, int t, L& line,
                              const LinePlace& at) {
    for (int g = 0; g < task.group; ++g) line.mix(1.0f, b.column(g, t, at.own), b.row(1 + g, t));
    const float* const k = b.row(0, t);
    const float du = line.dot(k), a = b.kept[t], dw = b.beta[t] * du;
    line.mix(a, -a * dw, k);
    if (!at.writes) return;
    store_one(task.du, b.token + t, b.head, at.number, du);
    if (task.dv) store_one(task.dv, b.token + t, b.head, at.number, dw);
  }
};

/// Computes one row of dS, the gradient of the memory S, and from it the part of dk that comes from
/// later tokens. Later tokens contribute to dk because they read what was written with k.
struct DeltaLaterStep {
  static constexpr bool reverse = true, remembers = false;
  static constexpr int row_arrays = 2, column_arrays = 1;
  static constexpr bool group_rows = true, group_columns = true;
  __device__ static int lines(const DeltaTask& task) { return task.k.width; }

  __device__ static void stage(const DeltaTask& task, const DeltaBatch& b) {
    b.stage_rows(0, task.error, b.head, 1.0f, true);
    b.stage_rows(1, task.du, b.head, 1.0f, true);
    b.stage_columns(0, task.k, b.head, task.scale);
    for (int g = 0; g < task.group; ++g) {
      b.stage_rows(2 + g, task.dy, b.head * task.group + g, 1.0f);
      b.stage_columns(1 + g, task.q, b.head * task.group + g, task.scale);
    }
  }
  template <class L>
  __device__ static void step(const DeltaTask& task, const DeltaBatch& b, int t, L& line,
                              const LinePlace& at) {
    const float sum = line.dot(b.row(0, t)), a = b.kept[t];
    for (int g = 0; g < task.group; ++g) {
      line.mix(1.0f, b.column(1 + g, t, at.own), b.row(2 + g, t));
    }
    line.mix(a, -a * b.column(0, t, at.own), b.row(1, t));
    if (at.writes) store_one(task.sums, b.token + t, b.head, at.number, sum);
  }
};

/// Computes one row of the memory S, and from it dq, the remaining terms of dk, and the row's part
/// of dc_t, a number per token. ddecay_t is the sum of dc over token t and all later tokens. The
/// query of a token also reads what the same token has written to S. This adds a term to dq and a
/// term to dk, but none to dc_t, in which these two terms would cancel.
struct DeltaEarlierStep {
  static constexpr bool reverse = false, remembers = false;
  static constexpr int row_arrays = 2, column_arrays = 2;
  static constexpr bool group_rows = true, group_columns = true;
  __device__ static int lines(const DeltaTask& task) { return task.k.width; }

  __device__ static void stage(const DeltaTask& task, const DeltaBatch& b) {
    b.stage_rows(0, task.error, b.head, 1.0f, true);
    b.stage_rows(1, task.du, b.head, 1.0f, true);
    b.stage_columns(0, task.k, b.head, task.scale);
    b.stage_columns(1, task.sums, b.head, 1.0f);
    for (int g = 0; g < task.group; ++g) {
      b.stage_rows(2 + g, task.dy, b.head * task.group + g, 1.0f);
      b.stage_columns(2 + g, task.q, b.head * task.group + g, task.scale);
    }
  }
  template <class L>
  __device__ static void step(const DeltaTask& task, const DeltaBatch& b, int t, L& line,
                              const LinePlace& at) {
    const float k = b.column(0, t, at.own), later = b.column(1, t, at.own), a = b.kept[t];
    const float* const u = b.row(0, t);
    const float asked = -a * line.dot(b.row(1, t));
    float share = k * (asked - later), dk = asked + later;
    for (int g = 0; g < task.group; ++g) {
      const float* const dy = b.row(2 + g, t);
      const float q = b.column(2 + g, t, at.own), own = L::dot(u, dy), held = a * line.dot(dy);
      share += q * held;
      dk += q * own;
      if (at.writes && task.dq) {
        const float dq = held + k * own;
        store_one(task.dq, b.token + t, b.head * task.group + g, at.number, task.scale * dq);
      }
    }
    line.mix(a, k, u);
    if (!at.writes) return;
    if (task.dk) store_one(task.dk, b.token + t, b.head, at.number, task.scale * dk);
    store_one(task.sums, b.token + t, b.head, at.number, share);
  }
};

template <class Step, int lanes, int each>
__global__ void __launch_bounds__(delta_threads) delta_sweep(DeltaTask task, int together) {
  using OfLanes = Line<lanes, each>;
  constexpr int lines = delta_threads / lanes;
  const SegmentView segment = task.segments[static_cast<int>(blockIdx.x)];
  const int own = Lanes<lanes>::index(), first_line = static_cast<int>(blockIdx.z) * lines;
  const bool there = first_line + own < Step::lines(task);
  const LinePlace at{own, first_line + own, there && OfLanes::lane() == 0};

  float* const shared = shared_memory<float>();
  const int row_arrays = Step::row_arrays + (Step::group_rows ? task.group : 0);
  const int column_arrays = Step::column_arrays + (Step::group_columns ? task.group : 0);
  DeltaBatch b;
  b.rows = shared;
  b.columns = b.rows + row_arrays * together * OfLanes::stride;
  b.kept = b.columns + column_arrays * together * lines;
  b.beta = b.kept + together;
  b.together = together;
  b.stride = OfLanes::stride;
  b.lines = lines;
  b.first_line = first_line;
  b.head = static_cast<int>(blockIdx.y);

  // `line` holds one column of S. `memory` is the index, in task.before and task.after, of the
  // column's entry in row 0.
  const std::int64_t memory =
      (std::int64_t{blockIdx.x} * task.heads + b.head) * task.k.width * task.v.width + at.number;
  OfLanes line;
#pragma unroll
  for (int e = 0; e < each; ++e) {
    const int r = e * lanes + OfLanes::lane();
    line.at[e] = Step::remembers && task.before && there && r < task.k.width
                     ? task.before[memory + std::int64_t{r} * task.v.width]
                     : 0.0f;
  }

  const int batches = (segment.keys + together - 1) / together;
  for (int n = 0; n < batches; ++n) {
    const int first = (Step::reverse ? batches - 1 - n : n) * together;
    b.token = segment.key + first;
    b.count = min(together, segment.keys - first);
    __syncthreads();
    b.stage_numbers(task);
    __syncthreads();
    Step::stage(task, b);
    __syncthreads();
    for (int i = 0; i < b.count; ++i) {
      Step::step(task, b, Step::reverse ? b.count - 1 - i : i, line, at);
    }
  }

  if constexpr (Step::remembers) {
    if (!task.after || !there) return;
#pragma unroll
    for (int e = 0; e < each; ++e) {
      const int r = e * lanes + OfLanes::lane();
      if (r < task.k.width) task.after[memory + std::int64_t{r} * task.v.width] = line.at[e];
    }
  }
}

/// One warp per token t and key head computes dbeta_t = du_t . w_t and the number dc_t. w_t is the
/// saved error, and du_t is the gradient of beta_t w_t. The sum of dc over token t and all later
/// tokens is ddecay_t.
__global__ void __launch_bounds__(delta_threads)
    delta_numbers(DeltaTask task, std::int64_t numbers, float* dbeta, bool add, float* dc) {
  constexpr int warps = delta_threads / warp_size;
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + warp_index();
  if (i >= numbers) return;
  const std::int64_t row = i / task.heads;
  const int head = static_cast<int>(i % task.heads), lane = lane_index();
  float beta = 0, shares = 0;
  for (int c = lane; c < task.du.width; c += warp_size) {
    beta += load_one(task.du, row, head, c) * load_one(task.error, row, head, c);
  }
  for (int r = lane; r < task.sums.width; r += warp_size) {
    shares += load_one(task.sums, row, head, r);
  }
  beta = warp_sum(beta);
  shares = warp_sum(shares);
  if (lane != 0) return;
  if (dbeta) dbeta[i] = add ? dbeta[i] + beta : beta;
  if (dc) dc[i] = shares;
}

template <class Step, int lanes, int each>
void delta_pass(CudaBackend& backend, const DeltaTask& task, std::int64_t lines) {
  constexpr int block_lines = delta_threads / lanes;
  const std::int64_t rows = Step::row_arrays + (Step::group_rows ? task.group : 0);
  const std::int64_t columns = Step::column_arrays + (Step::group_columns ? task.group : 0);
  const std::int64_t token =
      std::int64_t{sizeof(float)} * (rows * lanes * each + columns * block_lines + 2);
  const std::int64_t together = std::min<std::int64_t>(delta_together, delta_shared / token);
  LONGHAND_CHECK(together > 0,
                 "delta: cuda: expected fewer query heads for each key head, because the shared "
                 "memory of a block is too small, got ",
                 task.group);
  launch(backend.stream(),
         {task.segments.count, task.heads, (lines + block_lines - 1) / block_lines}, delta_threads,
         static_cast<std::size_t>(together * token), &delta_sweep<Step, lanes, each>, task,
         static_cast<int>(together));
}

/// Runs the pass `Step` with as many lanes per line (row or column of S) as its length requires.
template <class Step>
void delta_pass(CudaBackend& backend, const DeltaTask& task, std::int64_t length,
                std::int64_t lines) {
  LONGHAND_CHECK(length <= widest_line, "delta: cuda: expected heads of at most ", widest_line,
                 " columns, got ", length);
  if (length <= 32) return delta_pass<Step, 8, 4>(backend, task, lines);
  if (length <= 64) return delta_pass<Step, 8, 8>(backend, task, lines);
  if (length <= 128) return delta_pass<Step, 8, 16>(backend, task, lines);
  if (length <= 256) return delta_pass<Step, 16, 16>(backend, task, lines);
  delta_pass<Step, 32, 32>(backend, task, lines);
}

template <class Op>
DeltaTask delta_task_of(const Op& op) {
  return {.q = view(op.q),
          .k = view(op.k),
          .beta = op.beta.template data<float>(),
          .decay = pointer(op.decay),
          .segments = view(op.segments, op.segments),
          .scale = static_cast<float>(op.scale),
          .heads = static_cast<std::int32_t>(op.k.heads),
          .group = static_cast<std::int32_t>(op.q.heads / op.k.heads)};
}

}  // namespace

void run(CudaBackend& backend, const Delta& op) {
  DeltaTask task = delta_task_of(op);
  task.v = view(op.v);
  task.y = view(op.y);
  task.error = view(Heads{op.error, 0, op.k.heads, op.v.width});
  task.before = pointer(op.before);
  task.after = op.after ? op.after.data<float>() : nullptr;
  delta_pass<DeltaForwardStep>(backend, task, op.k.width, op.v.width);
}

void run(CudaBackend& backend, const DeltaBackward& op) {
  const std::int64_t tokens = op.q.data.rows(), heads = op.k.heads;
  const std::int64_t width = op.k.width, v_width = op.dy.width;
  const Heads du{Tensor(backend, {tokens, heads * v_width}, DType::f32), 0, heads, v_width};
  const Heads sums{Tensor(backend, {tokens, heads * width}, DType::f32), 0, heads, width};
  DeltaTask task = delta_task_of(op);
  task.error = view(Heads{op.error, 0, heads, v_width});
  task.dy = view(op.dy);
  task.dq = view(op.dq);
  task.dk = view(op.dk);
  task.dv = view(op.dv);
  task.du = view(du);
  task.sums = view(sums);
  delta_pass<DeltaWrittenStep>(backend, task, width, v_width);
  if (op.dq || op.dk || op.ddecay) {
    delta_pass<DeltaLaterStep>(backend, task, v_width, width);
    delta_pass<DeltaEarlierStep>(backend, task, v_width, width);
  }
  if (!op.dbeta && !op.ddecay) return;
  const Tensor dc = op.ddecay ? Tensor(backend, {tokens, heads}, DType::f32) : Tensor();
  constexpr int warps = delta_threads / warp_size;
  if (!op.ddecay) task.sums.width = 0;
  launch(backend.stream(), (tokens * heads + warps - 1) / warps, delta_threads, 0, &delta_numbers,
         task, tokens * heads, pointer(op.dbeta.tensor) ? op.dbeta.tensor.data<float>() : nullptr,
         op.dbeta.add, dc ? dc.data<float>() : nullptr);
  if (op.ddecay) {
    backend.run(Cumulate{.x = dc, .segments = op.segments, .reverse = true, .y = op.ddecay});
  }
}

}  // namespace longhand::cuda
