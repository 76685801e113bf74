#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

/// The interface of the attention kernels of one instruction set. A task is the attention of one
/// head in one segment (tokens that may read each other). A task of the backward pass covers all
/// query heads that read one key head. All pointers of a task refer to the first row of the segment
/// and the first column of the head. Rows are `stride` elements apart.
namespace longhand {
struct SoftmaxRule;
}

namespace longhand::cpu {

template <class T>
struct HeadRows {
  T* at = nullptr;
  std::int64_t stride = 0;
  explicit operator bool() const { return at != nullptr; }
  T* row(std::int64_t i) const { return at + i * stride; }
};

/// Number of queries in a panel. Kernels process all queries of a panel together. The number is the
/// same for all instruction sets. The ranges of rows and keys that threads process begin at
/// multiples of it.
inline constexpr std::int64_t attention_panel = 64;

/// Stick-breaking and TRA are leftward rules: they process the keys of a row from the last to the
/// first. Their backward passes keep this many numbers for each row and update them at every key:
///   stick-breaking: the weight not yet assigned, and the sum of P dP over the remaining keys;
///   TRA: the number of positive scores so far, and the gradient of TRA's count bias so far.
inline constexpr int walked_numbers = 2;

/// If a segment has at most this many queries, as in decoding, each query is computed separately.
inline constexpr std::int64_t attention_few = 4;

/// Query row i of the segment is at position offset + i and sees the keys (offset + i - window,
/// offset + i]. If there is no window, `window` is larger than any position. If there is no causal
/// mask, `offset` is the number of keys, so every query sees every key.
struct SegmentShape {
  std::int64_t queries, keys, offset, window;
  std::int64_t width, value_width;
};

/// A task of the forward pass. For ChaCAL and DeltaFormer, `earlier` contains the outputs at the
/// positions before the first query, one row per position. `tau` contains Scores::multiplier, one
/// row per query. `shift` contains Scores::decay, one row per key. `tau` and `shift` are null if
/// the scores do not use them.
template <class T>
struct AttentionRows {
  SegmentShape shape;
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  HeadRows<float> log_sum;
  HeadRows<T> mean = {}, residue = {};
  HeadRows<const T> earlier;
  HeadRows<const float> tau, shift;
  const float* sink = nullptr;
  // TRA only: the bias count_bias of each query, one row per query
  HeadRows<const float> pull = {};
  float scale;
  float gamma = 0;                  // ChaCAL only
  HeadRows<const float> gain = {};  // DeltaFormer: the factor g_i in y_i = v_i + g_i sum_j P_ij y_j
  HeadRows<T> read = {};            // DeltaFormer: z_i = sum_j P_ij y_j; may be null
};

/// A task of the backward pass: computes dk and dv of the keys [begin, end) of one key head, and
/// the terms that these keys contribute to the gradients of queries. `heads` query heads read this
/// key head. The tensors of query heads begin at the first of these heads. The next head begins
/// `width` columns later in q and dq, and `value_width` columns later in y, dy, `residue` and
/// `read`. In tensors with one number per head, such as log_sum, it is the next column.
///
/// Panels of queries and ranges of keys are processed from the last to the first. Each query's
/// gradient is thus summed over keys in one fixed order. From one range to the next, dq_sums stores
/// the partial sums for dq. The range that processes a panel last writes dq.
///
/// ChaCAL and DeltaFormer replace dy by W, the solution of a triangular system
/// (chacal_gradients.h). `solved_rows` contains W, for DeltaFormer multiplied by the gain. The
/// range that contains the key at a query's position writes the query's row of W.
template <class T>
struct AttentionGradients {
  SegmentShape shape;
  std::int64_t heads = 1;
  HeadRows<const T> q, k, v, y, dy;
  HeadRows<const T> residue = {};  // rounding error of y; null if y was not rounded
  HeadRows<const float> log_sum;
  HeadRows<const float> tau, shift, pull;  // each is null if the scores do not use it
  bool sink = false;
  float scale;
  HeadRows<T> dq, dk, dv;          // each is null if it is not required
  HeadRows<float> dtau;            // null if it is not required
  HeadRows<float> dshift;          // one row per key: the sum of -dS over queries
  HeadRows<float> dots, row_sums;  // dots: D_i = dy_i . y_i; row_sums: sum of dS over keys
  HeadRows<float> dpull;
  bool add_dq = false, add_dk = false, add_dv = false, add_dtau = false, add_dshift = false;
  bool add_dpull = false;
  float* dq_sums = nullptr;
  // Stick-breaking and TRA process one range of keys after another. For each row they store these
  // numbers after a range and read them before the next one: [heads][queries][walked_numbers].
  float* walked = nullptr;
  HeadRows<const T> read = {};      // DeltaFormer: z_i = sum_j P_ij y_j
  HeadRows<const float> gain = {};  // DeltaFormer: the factor g_i in y_i = v_i + g_i sum_j P_ij y_j
  HeadRows<float> dgain = {};
  bool add_dgain = false;
  const float* gamma = nullptr;  // ChaCAL only: gamma of the task's first query head
  std::int64_t gamma_step = 0;   // distance between the gammas of two heads; 0 if they share one
  float* solved_rows = nullptr;
  float* dgamma = nullptr;  // [heads]: gradients of gamma, only the terms of this task

  // The task's keys are [begin, end). `begin` is a multiple of `range`, the maximum number of keys.
  std::int64_t begin = 0, end = 0, range = 0;
};

/// The kernels of the forward pass. For a chunk of query rows, the caller calls `begin`, then
/// `before` for each range of keys before the chunk, then `own`, always with the same scratch.
/// `own` processes all keys that `before` did not process, and writes y and log_sum. Without a
/// causal mask, all keys are before every chunk. For ChaCAL and
/// DeltaFormer, the outputs at the keys of a range must be computed before `before` is called for
/// the range. Chunks and ranges begin at multiples of attention_panel rows.
template <class T>
struct AttentionKernels {
  struct Chunk {
    std::int64_t begin, end;
  };
  /// Number of floats of scratch for heads of these widths, chunks of at most `chunk` rows, and at
  /// most `keys` keys.
  std::int64_t (*scratch)(std::int64_t width, std::int64_t value_width, std::int64_t chunk,
                          std::int64_t keys);
  void (*begin)(const AttentionRows<T>& task, Chunk chunk, float* scratch);
  void (*before)(const AttentionRows<T>& task, Chunk chunk, std::int64_t from, std::int64_t to,
                 float* scratch);
  void (*own)(const AttentionRows<T>& task, Chunk chunk, float* scratch);
  /// True if the function `row` also writes the tensors that the rule saves for the backward pass.
  bool row_saves;
  /// Computes y of a single query with f32 products. Not used for ChaCAL and DeltaFormer.
  void (*row)(const AttentionRows<T>& task, std::int64_t row, float* scratch);
};

/// The kernels of the backward pass. For each range of keys, the caller calls `begin`, then
/// `begin_head`, `panel` and `end_head` for each query head, and then `end`, always with the same
/// scratch. It calls `panel` for each panel of queries that sees a key of the range, from the last
/// panel to the first.
template <class T>
struct AttentionGradientKernels {
  // True for stick-breaking and TRA. If a segment has several ranges of keys, these two rules
  // require the buffer AttentionGradients::walked.
  bool leftward;
  std::int64_t range;  // maximum number of keys in a range
  std::int64_t (*scratch)(std::int64_t width, std::int64_t value_width, std::int64_t range);
  /// Number of floats in a row of AttentionGradients::dq_sums or solved_rows, for heads of this
  /// width. The rows are ordered as [heads][queries]. For dq_sums, the number of queries is rounded
  /// up to whole panels.
  std::int64_t (*stride)(std::int64_t width);
  void (*begin)(const AttentionGradients<T>& task, float* scratch);
  void (*begin_head)(const AttentionGradients<T>& task, std::int64_t head, float* scratch);
  void (*panel)(const AttentionGradients<T>& task, std::int64_t head, std::int64_t row,
                float* scratch);
  void (*end_head)(const AttentionGradients<T>& task, std::int64_t head, float* scratch);
  void (*end)(const AttentionGradients<T>& task, float* scratch);
};

/// The kernels for each kind of matrix product. `exact` has f32 operands. `bf16` rounds operands to
/// bf16. `fast` splits operands into two bf16 parts on processors with tile registers. On other
/// processors, `fast` is the same as `exact`.
template <class Kernels>
struct ByProduct {
  Kernels exact, fast, bf16;
};

/// The kernels of both passes for tensors of the type T.
template <class T>
struct PassKernels {
  ByProduct<AttentionKernels<T>> forward;
  ByProduct<AttentionGradientKernels<T>> backward;
};

/// A table of all kernels of a mechanism. `Mechanism` is Chacal, DeltaFormer, or a rule of
/// core/contract/attention.h. The file MECHANISM.simd.cpp, for example chacal.simd.cpp, defines the
/// table. `strongest` is the strongest instruction set for which the table has its own kernels.
template <class Mechanism>
struct KernelsOf {
  static constexpr Isa strongest = Isa::avx512bf16;

  PassKernels<float> of_f32;
  PassKernels<bf16> of_bf16;
};
/// Only softmax has kernels with products on tile registers. Other mechanisms have needs that these
/// products do not meet. TRA requires f32 products. Entmax also computes dot products on vectors,
/// which must be rounded exactly as in the matrix products (dots_like_products). ChaCAL and
/// DeltaFormer solve a triangular system between their products. Stick-breaking stops before all
/// keys are processed.
template <>
struct KernelsOf<SoftmaxRule> {
  static constexpr Isa strongest = Isa::amx;

  PassKernels<float> of_f32;
  PassKernels<bf16> of_bf16;
};

/// A task of First-After-Last attention (FAL): one head in one segment. `match` receives the key
/// that each query chooses, or -1. `shape.window` is ignored.
template <class T>
struct FalRows {
  SegmentShape shape;
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  HeadRows<std::int32_t> match;
  bool stream = false;  // write y with stores that bypass the caches
};

/// A backward task of First-After-Last attention: the gradients of one key head and of the `heads`
/// query heads that read it. The columns of the query heads are ordered as in AttentionGradients.
/// `match` contains the key that each query chose. Its column g belongs to query head g.
template <class T>
struct FalGradients {
  SegmentShape shape;
  std::int64_t heads = 1;
  HeadRows<const T> q, k, v, dy;
  HeadRows<const std::int32_t> match;
  HeadRows<T> dq, dk, dv;  // each is null if it is not required
  Store to_dq, to_dk, to_dv;
};

template <class T>
struct FalKernels {
  static constexpr Isa strongest = Isa::avx512bf16;

  std::int64_t (*scratch)(std::int64_t width);
  /// Computes y and `match` of the queries [begin, end). `begin` is a multiple of attention_panel.
  void (*rows)(const FalRows<T>& task, std::int64_t begin, std::int64_t end, float* scratch);
  /// Number of floats of scratch that `gradients` needs for at most `range` keys. `readers` is the
  /// number of queries of one key head, summed over the query heads that share it.
  std::int64_t (*gradient_scratch)(std::int64_t width, std::int64_t value_width, std::int64_t range,
                                   std::int64_t readers);
  /// Writes dk and dv of the keys [begin, end), and dq of the queries that chose one of these keys.
  /// dq of a query that chose no key is written by the range that contains the query's position.
  void (*gradients)(const FalGradients<T>& task, std::int64_t begin, std::int64_t end,
                    float* scratch);
};

}  // namespace longhand::cpu
