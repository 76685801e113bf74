#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"
#include "core/rules.h"

/// The interface of the attention kernels of one instruction set. All pointers refer to the first
/// row of one segment and the first column of one head; rows are `stride` elements apart. A task
/// covers one segment and one head (in backward: the query heads of one key head).
namespace longhand::cpu {

template <class T>
struct HeadRows {
  T* at = nullptr;
  std::int64_t stride = 0;
  explicit operator bool() const { return at != nullptr; }
  T* row(std::int64_t i) const { return at + i * stride; }
};

/// Number of queries in a panel, for every instruction set. Chunks of work begin at multiples of
/// it.
inline constexpr std::int64_t attention_panel = 64;

/// Count of the numbers that a leftward rule updates for each row from key to key. Stick-breaking
/// updates the part of the row's weight that is not yet assigned, and the sum of P dP over the
/// remaining keys. TRA updates the number of keys with positive scores so far, and the gradient of
/// pull so far.
inline constexpr int walked_numbers = 2;

/// Up to this many queries of a segment are computed one by one, as in decoding.
inline constexpr std::int64_t attention_few = 4;

/// Query row i of the segment is at position offset + i and sees the keys (offset + i - window,
/// offset + i]. Without a window, window is larger than any position.
struct SegmentShape {
  std::int64_t queries, keys, offset, window;
  std::int64_t width, value_width;
};

/// The forward pass of one head. For ChaCAL and DeltaFormer, the outputs at positions before
/// `offset` are in `earlier`, one row per position. tau has one row per query, and
/// `shift` holds c, one per key; null: none.
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
  HeadRows<const float> pull = {};  // one row per query
  float scale;
  float gamma = 0;                  // ChaCAL's
  HeadRows<const float> gain = {};  // DeltaFormer's, one row per query
  HeadRows<T> read = {};            // DeltaFormer's z; null: not wanted
};

/// Computes the gradients of the keys [begin, end) of one key head, and the terms that these keys
/// contribute to the gradients of queries. The queries are those of the `heads` query heads that
/// read this key head. Columns of query head g start g width after those of head 0 (for values,
/// g value_width). Entries of log_sum, gamma and similar numbers start g after those of head 0.
/// Panels of queries and ranges of keys are processed from the last to the first, so that each
/// query's gradient is summed over keys in one fixed order. dq_sums contains these sums between
/// ranges. The range that processes a panel last writes dq.
///
/// ChaCAL's W_i and DeltaFormer's g_i W_i are in `solved_rows` once the range with key i has passed
/// panel i.
template <class T>
struct AttentionGradients {
  SegmentShape shape;
  std::int64_t heads = 1;
  HeadRows<const T> q, k, v, y, dy;
  HeadRows<const T> residue = {};  // null: y was not rounded
  HeadRows<const float> log_sum;
  HeadRows<const float> tau, shift, pull;  // null: none
  bool sink = false;
  float scale;
  HeadRows<T> dq, dk, dv;          // null: not required
  HeadRows<float> dtau;            // null: not required
  HeadRows<float> dshift;          // per key: minus the sums of dS over queries
  HeadRows<float> dots, row_sums;  // D_i and sum_j dS_ij
  HeadRows<float> dpull;
  bool add_dq = false, add_dk = false, add_dv = false, add_dtau = false, add_dshift = false;
  bool add_dpull = false;
  float* dq_sums = nullptr;
  // state of leftward rules between ranges: [heads][queries][walked_numbers]
  float* walked = nullptr;
  HeadRows<const T> read = {};      // DeltaFormer's z
  HeadRows<const float> gain = {};  // only for DeltaFormer
  HeadRows<float> dgain = {};
  bool add_dgain = false;
  const float* gamma = nullptr;  // of head 0; null unless ChaCAL
  std::int64_t gamma_step = 0;   // 0 if one gamma serves all heads
  float* solved_rows = nullptr;
  float* dgamma = nullptr;  // [heads], for this segment, key head and range

  std::int64_t begin = 0, end = 0, range = 0;  // keys; ranges begin at multiples of `range`
};

/// Kernels that compute the query rows of a chunk. A caller calls three of them in this order, with
/// the same scratch: `begin`, then `before` for each range of keys before the chunk, then `own`.
/// `own` processes the remaining keys and writes y and log_sum. For ChaCAL and DeltaFormer, the
/// outputs at all keys that a call reads must be known. Chunks and ranges begin at multiples of
/// attention_panel rows.
template <class T>
struct AttentionKernels {
  static constexpr Isa strongest = Isa::avx512bf16;

  struct Chunk {
    std::int64_t begin, end;
  };
  /// Floats of scratch for rows of these widths, at most `chunk` rows with `keys` keys.
  std::int64_t (*scratch)(std::int64_t width, std::int64_t value_width, std::int64_t chunk,
                          std::int64_t keys);
  void (*begin)(const AttentionRows<T>& task, Chunk chunk, float* scratch);
  void (*before)(const AttentionRows<T>& task, Chunk chunk, std::int64_t from, std::int64_t to,
                 float* scratch);
  void (*own)(const AttentionRows<T>& task, Chunk chunk, float* scratch);
  /// Computes one row by itself, with f32 products; not for ChaCAL and DeltaFormer.
  void (*row)(const AttentionRows<T>& task, std::int64_t row, float* scratch);
};

/// The kernels of the backward pass. For each range of keys, the caller calls `begin`, then the
/// three functions below for each head, and then `end`, always with the same scratch. For each head
/// it calls `begin_head`, `panel` for each panel from the last that sees the range to the first,
/// and `end_head`.
template <class T>
struct AttentionGradientKernels {
  static constexpr Isa strongest = Isa::avx512bf16;

  std::int64_t range;  // keys whose gradients stay in scratch while the queries pass
  std::int64_t (*scratch)(std::int64_t width, std::int64_t value_width, std::int64_t range);
  /// Number of floats in a row of dq_sums and of solved_rows. Rows are ordered [heads][queries], in
  /// dq_sums with queries rounded up to panels.
  std::int64_t (*stride)(std::int64_t width);
  void (*begin)(const AttentionGradients<T>& task, float* scratch);
  void (*begin_head)(const AttentionGradients<T>& task, std::int64_t head, float* scratch);
  void (*panel)(const AttentionGradients<T>& task, std::int64_t head, std::int64_t row,
                float* scratch);
  void (*end_head)(const AttentionGradients<T>& task, std::int64_t head, float* scratch);
  void (*end)(const AttentionGradients<T>& task, float* scratch);
};

/// Kernels by kind of product: f32 operands; operands split in two bf16 parts where there are tile
/// registers (elsewhere exact products); or operands rounded to bf16.
template <class Kernels>
struct ByProduct {
  static constexpr Isa strongest = Isa::amx;

  Kernels exact, fast, bf16;
};

/// The kernels of the rules other than softmax. TRA's products are exact.
template <class Kernels>
struct ByRule {
  static constexpr Isa strongest = Isa::avx512bf16;

  ByProduct<Kernels> stick, tra, entmax;
  const ByProduct<Kernels>& of(Rule rule) const {
    return rule == Rule::stick ? stick : rule == Rule::tra ? tra : entmax;
  }
};

/// The kernels of mechanisms whose rows read outputs of earlier rows.
template <class Kernels>
struct BySolve {
  static constexpr Isa strongest = Isa::avx512bf16;

  ByProduct<Kernels> chacal, deltaformer;
};

/// First-After-Last attention of one head in one segment. Shapes are as above, but there is no
/// window.
template <class T>
struct FalRows {
  SegmentShape shape;
  HeadRows<const T> q, k, v;
  HeadRows<T> y;
  HeadRows<std::int32_t> match;
  bool stream = false;  // write y with stores that bypass the caches
};

/// Gradients for one key head and the `heads` query heads that read it. These heads are stored as
/// in AttentionGradients. Column g of `match` belongs to head g.
template <class T>
struct FalGradients {
  SegmentShape shape;
  std::int64_t heads = 1;
  HeadRows<const T> q, k, v, dy;
  HeadRows<const std::int32_t> match;
  HeadRows<T> dq, dk, dv;  // null: not required
  Store to_dq, to_dk, to_dv;
};

template <class T>
struct FalKernels {
  static constexpr Isa strongest = Isa::avx512bf16;

  std::int64_t (*scratch)(std::int64_t width);
  /// Query rows [begin, end); begin is a multiple of attention_panel.
  void (*rows)(const FalRows<T>& task, std::int64_t begin, std::int64_t end, float* scratch);
  /// Floats of scratch for ranges of this many keys, read by this many queries in all their heads.
  std::int64_t (*gradient_scratch)(std::int64_t width, std::int64_t value_width, std::int64_t range,
                                   std::int64_t readers);
  /// Writes dk and dv of the keys [begin, end), and dq of the queries whose match is one of these
  /// keys. dq of a query without a match is written by the range that contains the query's
  /// position.
  void (*gradients)(const FalGradients<T>& task, std::int64_t begin, std::int64_t end,
                    float* scratch);
};

}  // namespace longhand::cpu
