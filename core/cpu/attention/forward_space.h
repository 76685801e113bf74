#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/tile_products.h"

/// Scratch memory of the forward pass. A kernel computes a chunk of consecutive query rows, which
/// it processes in panels of 64 rows.
namespace longhand::cpu::LONGHAND_ISA::attention {

// Initial value of the running maximum of a row's scores. It is finite, because the difference of
// two infinite maxima would be NaN.
inline constexpr float lowest = -1e38f;

/// The buffers of one kernel call. The constructor divides the scratch memory `at` among them. If
/// `at` is null, it only computes their total size `floats`.
template <class Product>
struct Space {
  // Packed keys and values. The keys before the chunk of queries are packed one block of 64 keys at
  // a time. The keys at the positions of the chunk's queries are packed all at once.
  float *keys, *values;
  // scores: the scores of a block of 64 keys and a panel of 64 queries, f32 [block][panel]. p: the
  // weights of these keys as packed words (product.h), [block / Product::depth][panel].
  float *scores, *p;
  // The vectors that later rows of ChaCAL and DeltaFormer read instead of v (forward_rows.h), one
  // for each query of a panel, f32 [panel][value_stride]. Other rules do not use this buffer.
  float* solved;
  // queries: the packed queries of each panel of the chunk, [depth][panel]. outputs: for each
  // query, the sum of weight times value over the keys processed so far.
  float *queries, *outputs;
  // A transposed copy of `outputs` for one panel, [panel][value_stride], with one row per query.
  // Only products on tile registers use it.
  float* rows;
  // One number per query. times: factor of its scores. maxima: its maximum score so far. sums: the
  // sum of its weights so far. shrink: the factor by which its sums so far are multiplied when its
  // maximum grows.
  float *times, *maxima, *sums, *shrink;
  // The shifts c (Scores::decay), which change the score of query i and key j by c_i - c_j: one per
  // query of the chunk, and one per packed key.
  float *query_shifts, *key_shifts;
  // One number per query, for some rules only. pulls: for TRA, the query's bias count_bias
  // times log2(e). counts: for TRA, the number of positive scores so far; for sigmoid attention,
  // log2 of the number of keys that the query sees. bounds: for TRA, a number that shows when
  // earlier keys can be skipped (core/rules/tra.h).
  float *pulls, *counts, *bounds;
  std::int64_t depth, key_stride, value_stride, value_block, floats;

  Space(std::int64_t width, std::int64_t value_width, std::int64_t chunk, float* at) {
    depth = words<Product>(width);
    key_stride = packed_width(Product::parts * depth);
    value_stride = packed_width(value_width);
    value_block = key_block<Product>(value_width);
    const std::int64_t count = round_up(chunk, panel);
    ScratchParts take{at};
    keys = take(count * key_stride);
    values = take(count / block * value_block);
    scores = take(block * panel);
    p = Product::depth == 1 ? scores : take(Product::parts * (block / Product::depth) * panel);
    solved = Product::rounds && !Product::tiled ? take(panel * value_stride) : nullptr;
    queries = take(count * Product::parts * depth);
    outputs = take(count * value_stride);
    rows = Product::tiled ? take(panel * value_stride) : nullptr;
    times = take(count);
    maxima = take(count);
    sums = take(count);
    shrink = take(panel);
    query_shifts = take(count);
    key_shifts = take(count);
    pulls = take(count);
    counts = take(count);
    bounds = take(count);
    floats = take.floats;
  }
};

/// The numbers of one panel of queries: pointers into the arrays of Space that contain one number
/// for each query.
struct Running {
  float *times, *shifts;
  float *maxima, *sums, *shrink;
  float *pulls, *counts, *bounds;
};

/// A panel of at most 64 consecutive queries of a task. `row` is the first query, `count` is the
/// number of queries, and `state` contains numbers such as their maximum scores so far.
template <class T>
struct PanelRows {
  const AttentionRows<T>& task;
  std::int64_t row, count;
  Running state;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
