#pragma once

#include <type_traits>

#include "cuda/attention/wide.h"

/// Backward passes of softmax attention, ChaCAL and DeltaFormer, without atomics. One kernel
/// computes the gradients of the queries, and another computes the gradients of the keys and
/// values. Each block is the only writer of its 64 rows. Both kernels recompute P from log_sum,
///   P_ij = 2^((s_ij - log_sum_i) log2 e);  dP_ij = dy_i . v_j;  dS_ij = P_ij (dP_ij - D_i).
/// An earlier kernel computes D_i = dy_i . y_i. For ChaCAL with gamma = g, W_i, the solution of its
/// backward system (docs/math/chacal.md), replaces dy_i, and U_j = (1 - g) v_j + g y_j replaces
/// v_j. D_i is then W_i . y_i. For j = i, the term g y_j is missing, so
///   dP_ii = W_i . (1 - g) v_i = W_i . U_i - g D_i.
/// For DeltaFormer, W_i replaces dy_i, the output y_j replaces v_j, D_i is W_i . z_i, and dS_ij is
/// also multiplied by the gain of query i.
///
/// For heads wider than 128 columns (wide.h), a block computes either dq, dk or dv, for 32 rows. A
/// block for dq or dk computes P and dP from all columns, and a block for dv computes only P.
namespace longhand::cuda {

/// The arguments of the two kernels that compute dq, dk, dv and the gradients of Scores::multiplier
/// and Scores::decay, as described in AttentionBackward. P is computed from log_sum. If `gamma` is
/// set, the gradients are those of ChacalBackward. Then dy contains W, the solution of ChaCAL's
/// backward system, row_dots contains W . y of each query, and (1 - gamma) v + gamma y replaces v
/// for the keys before the query. For DeltaFormerBackward, the kernels compute dq and dk only. Then
/// scores.own_key is false, v contains the outputs y, dy contains W, the solution of DeltaFormer's
/// backward system, and `gain` contains the gains. row_dots contains W . z of each query, where z
/// is the weighted mean of the earlier outputs.
struct GradientTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, dy = {};
  const float *log_sum = nullptr, *row_dots = nullptr;
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  // DeltaFormer only: the gains, [query rows, heads], otherwise null. Row i of dS is multiplied by
  // the gain of query i. Not used if the scores have shifts.
  const float* gain = nullptr;
  HeadsView dq = {}, dk = {}, dv = {};
  // partial sums of the gradient of Scores::multiplier, [1, query_rows, heads] or, for wide heads,
  // [4 wide_parts(), query_rows, heads]
  float* dtau = nullptr;
  std::int64_t query_rows = 0;
  float* dshift = nullptr;
  // row sums of dS, [query_rows, heads]; null if the gradient of Scores::decay is not required
  float* row_sums = nullptr;
  bool add_shift = false;
  // numbers of slices of wide heads (wide.h)
  std::int32_t key_slices = 1, value_slices = 1;
};

/// Launches the last kernels of the backward passes of softmax attention, ChaCAL and DeltaFormer.
/// task.dy and task.row_dots must already be computed. For ChaCAL and DeltaFormer, task.dy is W,
/// the solution of their backward system. `sink` is only read if `dsink` is not empty.
void attention_gradients(CudaBackend& backend, Math math, const Scores& scores,
                         const HeadsTarget& dq, const HeadsTarget& dk, const HeadsTarget& dv,
                         const ScoreTargets& dscores, const Tensor& sink, const Target& dsink,
                         GradientTask task);

/// launch_query_gradients() computes dq, dtau (the gradient of Scores::multiplier) and the row sums
/// of dS. launch_key_gradients() computes dk, dv and dshift (the gradient of Scores::decay).
void launch_query_gradients(CudaBackend& backend, Math math, const Scores& scores,
                            const Target& dtau, GradientTask task);
void launch_key_gradients(CudaBackend& backend, Math math, const Scores& scores, GradientTask task);

/// P_ij, computed from the product q_i . k_j and `shift`, the difference of the shifts
/// (Scores::decay) of query i and key j. The score and the shift may be large and cancel, so they
/// are added before log_sum is subtracted. The kernels for dq and for dk compute the same bits of
/// P. This matters for the gradient of Scores::decay: it is a sum of dS from the first kernel minus
/// a sum of dS from the second, and the rounding errors of P cancel in this difference.
template <bool shifted>
__device__ __forceinline__ float weight_of(float product, float factor, float shift,
                                           float log_sum) {
  if constexpr (!shifted) return power_of_two(fmaf(product, factor, -log_sum));
  return power_of_two(fmaf(product, factor, shift * log2_of_e) - log_sum);
}

template <class Product, int slice>
constexpr std::size_t tiles_bytes(int steps) {
  return sizeof(typename Product::Element) * Product::stride(slice) *
         static_cast<std::size_t>(2 * tile_rows + steps * step_rows<Product, slice>);
}
/// True if an H100 multiprocessor has room for three blocks that each have buffers for the operands
/// of two steps, which are iterations of the kernel's main loop. With two buffers, the operands of
/// a step are loaded while the previous step is computed.
template <class Product, int slice>
constexpr bool can_go_ahead = tiles_bytes<Product, slice>(4) <= 72 << 10;
/// True if the kernels are also compiled with a buffer for the operands of only one step, which is
/// an iteration of the main loop. A multiprocessor with 100 KiB of shared memory has room for two
/// blocks of this variant, but for only one block with buffers for two steps.
template <class Product, int slice>
constexpr bool can_stay =
    tiles_bytes<Product, slice>(4) > 49 << 10 && tiles_bytes<Product, slice>(2) <= 49 << 10;

/// Variants of the two kernels. in_turn: a block loads the operands of a step of its main loop
/// after the previous step. ahead: a block has two buffers, so that it loads the operands of the
/// next step during the current one. wide: for heads wider than 128 columns (wide.h).
enum class Steps { in_turn, ahead, wide };

/// The number of threads, and of rows of the result, in a block.
template <Steps steps>
constexpr int gradient_threads = steps == Steps::wide ? wide_threads : attention_threads;
template <Steps steps>
constexpr int gradient_rows = steps == Steps::wide ? wide_rows : tile_rows;
/// Rows per step of the main loop: keys in the kernel for dq, queries in the kernel for dk and dv.
template <class Product, int slice, Steps steps>
constexpr int gradient_step = steps == Steps::wide ? wide_step : step_rows<Product, slice>;
/// The size of a block's dynamic shared memory.
template <class Product, int slice, Steps steps>
constexpr std::size_t gradient_bytes = steps == Steps::wide
                                           ? WideTiles<Product>::bytes
                                           : tiles_bytes<Product, slice>(steps == Steps::ahead ? 4
                                                                                               : 2);

/// Loads the values of `count` keys of a segment, beginning with key `first`. They are rows of v
/// or, for ChaCAL, rows of (1 - gamma) v + gamma y of the query head `head`.
template <class Product, int slice, int rows, int threads = attention_threads>
__device__ __forceinline__ void stage_values(typename Product::Element* tile,
                                             const GradientTask& task, const SegmentView& at,
                                             int first, int count, int head, int column) {
  const int key_head = head / task.scores.group;
  if (task.gamma) {
    const float g = task.gamma[head * task.gamma_step];
    stage_computed<Product, slice, threads>(
        tile, rows, count, column, [&](float(&u)[8], int r, int c) {
          float y[8];
          load_eight(u, task.v, at.key + first + r, key_head, c);
          load_eight(y, task.y, at.query + first + r, head, c);
          add_outputs(u, y, g);
        });
  } else {
    stage<Product, slice, rows, threads>(tile, task.v, at.key + first, count, key_head, column);
  }
}
template <class Product, int slice, int rows, int threads = attention_threads>
__device__ __forceinline__ void settle_values(typename Product::Element* tile,
                                              const GradientTask& task) {
  if (!task.gamma) settle<Product, slice, rows, threads>(tile, task.v);
}

/// The values of `count` keys of a segment, beginning with key `first`, as the kernels for wide
/// heads load them (WideTiles).
struct ValueRows {
  const GradientTask& task;
  const SegmentView& at;
  int first, count, head;

  template <class Product, int slice, int rows>
  __device__ __forceinline__ void load(typename Product::Element* tile, int column) const {
    stage_values<Product, slice, rows, wide_threads>(tile, task, at, first, count, head, column);
  }
  template <class Product, int slice, int rows>
  __device__ __forceinline__ void round(typename Product::Element* tile) const {
    settle_values<Product, slice, rows, wide_threads>(tile, task);
  }
};

/// Chooses the type of products for the math mode, the slice width for the heads, and the variant
/// of the kernels. Calls body(Product{}, Slice{}, steps, shifted), where `steps` is a constant of
/// the type Steps. `shifted` is true if the scores have shifts (Scores::decay).
template <class Body>
void visit_gradients(CudaBackend& backend, Math math, const Scores& scores, GradientTask& task,
                     Body&& body) {
  const std::int64_t width = scores.q.width, v_width = task.v.width;
  const DType type = scores.q.data.dtype();
  const auto with = [&](auto product, auto size, auto steps) {
    if (scores.decay) {
      body(product, size, steps, std::true_type{});
    } else {
      body(product, size, steps, std::false_type{});
    }
  };
  if (is_wide(width, v_width)) {
    return visit_math(math, type, [&](auto product) {
      using Size = WideSlice<decltype(product)>;
      task.key_slices = slices(width, Size::value);
      task.value_slices = slices(v_width, Size::value);
      with(product, Size{}, std::integral_constant<Steps, Steps::wide>{});
    });
  }
  visit_product(math, type, std::max(width, v_width), [&](auto product, auto size) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    constexpr std::integral_constant<Steps, Steps::in_turn> in_turn;
    if constexpr (can_go_ahead<Kind, slice>) {
      if constexpr (can_stay<Kind, slice>) {
        if (!worth_more_memory(backend.device(), gradient_bytes<Kind, slice, Steps::ahead>,
                               gradient_bytes<Kind, slice, Steps::in_turn>)) {
          return with(product, size, in_turn);
        }
      }
      with(product, size, std::integral_constant<Steps, Steps::ahead>{});
    } else {
      with(product, size, in_turn);
    }
  });
}

}  // namespace longhand::cuda
