#pragma once

#include <algorithm>

#include "cuda/attention/run.h"

/// Shared code of the attention rules other than softmax, which has faster kernels of its own. A
/// block computes a tile of products q . k as the softmax kernels do and stores it in shared
/// memory. All threads of the block then apply the rule's formulas. The keys of a query are divided
/// into runs of 16 keys, which begin at multiples of 16. Each run is processed by one thread, which
/// begins with the key nearest to the query. The runs of a query belong to neighbouring lanes. A
/// lane receives what its run needs to know of the runs nearer to the query. In stick-breaking
/// attention, for example, this is the length of the stick that those runs leave. The weights are
/// read back into registers for the product with the values. Heads wider than a slice of 64 columns
/// are handled as in gradients.h. Sums over slices have the same order in every kernel, so every
/// kernel computes the same bits of a score.
///
/// A rule's file defines a walker, which is the state of one query while its keys are processed.
/// All lanes of a query have the same state. The number of lanes of a query differs between
/// kernels, but the runs are the same, so every kernel computes the same bits of a weight. The
/// walker is derived from Query, which has defaults for the functions that only some rules need. In
/// both passes, a walker has
///   Tensors       a struct of pointers to the rule's own tensors
///   start(scores, tensors, entry)
///                 Reads the rule's inputs for the query, such as TRA's count bias. `entry` is
///                 the index of the query in tensors of shape [query tokens, heads].
///   finished()    True if the query needs no further keys.
/// The forward pass (rule_forward.h) calls
///   weigh<lanes>(run)
///                 Replaces the scores of this lane's run of keys by weights, which are 0 for keys
///                 that the query does not see. The other lanes of the query call weigh() for their
///                 runs at the same time.
///   normalized    True if the weights must be divided by their sum, which is known only after
///                 the last key. weigh() then returns the factor by which the sum of P v over the
///                 keys processed before must be multiplied. After the last key, share() returns
///                 1 / (sum of the weights), by which the sum over all keys must be multiplied.
///   save(tensors, entry)
///                 Stores the tensors that the backward pass needs.
/// The backward pass (rule_gradients.h) calls
///   start_gradients(tensors, entry)
///                 Reads the saved tensors, after start().
///   gradients<Product, lanes>(run, dp)
///                 Replaces the scores of this lane's run by P, and dP in `dp` by dS. P and dS
///                 become 0 for keys that the query does not see. Only rules whose weights depend
///                 on later keys (leftward = true) have this function. Other rules have instead
///   gradient(s, dp)
///                 Returns P and dS of a key that has the score s and dP = dp.
///   finish_gradients<lanes>()
///                 Called by all lanes after the last key, so that they can exchange their sums.
///   store_gradients(tensors, entry)
///                 Stores the gradients of the rule's own tensors.
///   state(), resume(state)
///                 state() returns the state after the keys processed so far. resume() restores it
///                 in another block, which continues with the next keys. Only rules whose weights
///                 depend on later keys (leftward = true) have these two functions.
namespace longhand::cuda::walks {

// slice: columns per slice of a head. steps: number of rows that a thread block processes per step.
// The rows are keys if the block has a tile of queries, and queries if it has a tile of keys.
constexpr int slice = 64, steps = 32;
// Number of keys of a query that one thread processes. In kernels whose blocks have a tile of
// queries, a step has query_lanes runs of keys. In the kernel whose blocks have a tile of keys, the
// tile has key_lanes runs.
constexpr int run_keys = 16;
constexpr int query_lanes = steps / run_keys, key_lanes = tile_rows / run_keys;
static_assert(query_lanes * tile_rows == attention_threads);
static_assert(key_lanes * steps == attention_threads);

/// The weight of a key, and the gradient of its score.
struct Gradient {
  float p, ds;
};

/// A run of keys of one query. Bit n of `seen` is set if the query sees key n of the run. scores[n]
/// is the score of this key, or 0 if the query does not see it.
struct Run {
  float scores[run_keys];
  unsigned seen = 0;

  __device__ __forceinline__ bool sees(int n) const { return (seen >> n & 1) != 0; }
};

/// Index of this thread's run among the runs of its query. Later runs have keys nearer to the
/// query.
template <int lanes>
__device__ __forceinline__ int run_index() {
  return static_cast<int>(threadIdx.x) % lanes;
}
/// Passes a number along the runs of a query, from the last run, which is nearest to the query, to
/// the first. Each run changes the number to combine(number, own), where `own` is the argument of
/// its lane. Returns the number that reaches this lane's run, and replaces `number` by the number
/// after all runs.
template <int lanes, class Combine>
__device__ __forceinline__ float pass_along(float& number, float own, const Combine& combine) {
  float reached = number;
#pragma unroll
  for (int run = lanes - 1; run >= 0; --run) {
    const float of_run = __shfl_sync(full_warp, own, run, lanes);
    if (run == run_index<lanes>()) reached = number;
    number = combine(number, of_run);
  }
  return reached;
}
/// The sum or the maximum of x over the lanes of a query.
template <int lanes>
__device__ __forceinline__ float sum_of_runs(float x) {
#pragma unroll
  for (int step = 1; step < lanes; step *= 2) x += __shfl_xor_sync(full_warp, x, step);
  return x;
}
template <int lanes>
__device__ __forceinline__ float largest_of_runs(float x) {
#pragma unroll
  for (int step = 1; step < lanes; step *= 2) x = fmaxf(x, __shfl_xor_sync(full_warp, x, step));
  return x;
}

/// The base class of all walkers, each of which is the state of one query. It contains the position
/// of the query and computes the scores of the keys that the query sees. Rule is the struct of the
/// attention rule's formulas (core/rules/rule.h).
template <class Rule>
struct Query {
  using Formulas = Rule;
  // scale * tau * Rule::unit, by which q . k is multiplied
  float factor = 0;
  int position = -1;
  bool there = false;  // false if the block has no query for this thread
  float shift = 0;     // the shift (Scores::decay) at the query's position
  // The shifts of the keys of the segment: shifts[j * heads] is the shift of key j. Null if the
  // scores have no shifts.
  const float* shifts = nullptr;

  __device__ void find(const ScoresView& scores, const SegmentView& at, int query, int head) {
    there = query < at.queries;
    if (!there) return;
    position = at.offset() + query;
    factor = scores.scale * scores.tau_of(at.query + query, head) * Rule::unit;
    if (!scores.shift) return;
    shifts = scores.shift + at.key * scores.heads + head;
    shift = shifts[std::int64_t{position} * scores.heads];
  }
  __device__ bool sees(const ScoresView& scores, int key) const {
    return there && visible(scores, position, key) && (Rule::own_key || key < position);
  }
  /// The score of a key times Rule::unit, computed from the product q . k. It has the same bits in
  /// every kernel.
  __device__ float score(const ScoresView& scores, float product, int key) const {
    if (!shifts) return product * factor;
    const float apart = shift - shifts[std::int64_t{key} * scores.heads];
    return fmaf(apart, Rule::unit, product * factor);
  }
  /// Computes the scores of the run of keys that begins with key `begin`. The score is 0 for keys
  /// from begin + count on, and for keys that the query does not see. s[n * stride] is the product
  /// q . k of key begin + n.
  __device__ Run run_of(const ScoresView& scores, int begin, int count, const float* s,
                        int stride) const {
    Run run;
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      const bool seen = n < count && sees(scores, begin + n);
      run.scores[n] = seen ? score(scores, s[n * stride], begin + n) : 0.0f;
      run.seen |= seen ? 1u << n : 0;
    }
    return run;
  }

  // Defaults for the members that only some of the attention rules define.
  static constexpr bool normalized = false;
  template <class Tensors>
  __device__ void start(const ScoresView&, const Tensors&, std::int64_t) {}
  __device__ bool finished() const { return false; }
  template <class Tensors>
  __device__ void save(const Tensors&, std::int64_t) const {}
  template <class Tensors>
  __device__ void start_gradients(const Tensors&, std::int64_t) {}
  template <int lanes>
  __device__ void finish_gradients() {}
  template <class Tensors>
  __device__ void store_gradients(const Tensors&, std::int64_t) const {}
};

/// put_tile copies a warp's 16 rows from registers to a tile in shared memory, and get_tile copies
/// them back. Entry (r, c) of the tile is tile[r * row_stride + c * column_stride].
template <int m>
__device__ void put_tile(float* tile, int row_stride, int column_stride, const float (&x)[m][4]) {
  float* const to = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride] = x[i][e];
    }
  }
}
template <int m>
__device__ void get_tile(const float* tile, int row_stride, int column_stride, float (&x)[m][4]) {
  const float* const from = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[i][e] =
          from[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride];
    }
  }
}

template <class Product>
constexpr int tile_entries = tile_rows* Product::stride(slice);
template <class Product>
constexpr int step_entries = steps* Product::stride(slice);
// Distance in floats between the scores of adjacent keys in shared memory: walk_stride if a block
// has 64 queries, wave_stride if a block has 64 keys.
constexpr int walk_stride = tile_rows + 1;
constexpr int wave_stride = steps + 1;
// In a block with 64 keys, a gap of `wave_gap` floats follows each run of keys in shared memory.
// The lanes of a warp access four runs at the same time. Because of the gaps, these accesses are to
// different banks.
constexpr int wave_gap = 8, wave_run = run_keys * wave_stride + wave_gap;
constexpr int walk_floats = steps * walk_stride, wave_floats = key_lanes * wave_run;

/// c = a b^T, summed over all slices of the head. a is this warp's rows of the tile `mine`, and b
/// is the tile `others`. bring_mine and bring_others load one slice at a time into these two tiles
/// of shared memory.
template <class Product, int m, class Mine, class Others>
__device__ void dots_of_slices(float (&c)[m][4], typename Product::Element* mine,
                               typename Product::Element* others, int parts, bool busy,
                               const Mine& bring_mine, const Others& bring_others) {
  clear(c);
  for (int part = 0; part < parts; ++part) {
    __syncthreads();
    if (parts > 1) bring_mine(part);
    bring_others(part);
    __syncthreads();
    if (busy) dots<Product, slice>(c, mine + 16 * warp_index() * Product::stride(slice), others);
  }
}

/// The queries of a block: first .. first + rows - 1 of a segment, at positions from `start` on.
/// own_queries() orders the blocks so that tiles with the most keys start first.
struct BlockQueries {
  SegmentView at;
  int first, rows, start;
};
__device__ __forceinline__ BlockQueries own_queries(const SegmentsView& segments) {
  const std::int64_t slot = std::int64_t{gridDim.x} - 1 - blockIdx.x;
  const Tile tile = tile_at(segments.query_begin, segments.count, tile_rows, slot);
  const SegmentView at = segments[tile.segment];
  return {at, tile.first, min(tile_rows, at.queries - tile.first), at.offset() + tile.first};
}

/// Loads a tile. Each thread returns when its own entries are loaded, so a barrier must follow.
template <class Product, int rows>
__device__ void fetch(typename Product::Element* tile, const HeadsView& x, std::int64_t row,
                      int count, int head, int part) {
  stage<Product, slice, rows>(tile, x, row, count, head, part * slice);
  commit_copies();
  wait_for_copies<0>();
  settle<Product, slice, rows>(tile, x);
}

/// Calls body(Product{}) with the type of products (f32, tf32 or bf16) that the walker's rule uses
/// in the math mode `math`.
template <class Walker, class Body>
void choose_product(const Scores& scores, Math math, Body&& body) {
  if constexpr (Walker::Formulas::exact_scores) {
    body(ExactProduct{});
  } else {
    if (math == Math::exact) return body(ExactProduct{});
    if (math == Math::bf16 || scores.q.data.dtype() == DType::bf16) return body(Bf16Product{});
    body(Tf32Product{});
  }
}

}  // namespace longhand::cuda::walks
