#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/tile_products.h"

/// Scratch memory of the forward pass. A kernel computes a chunk of consecutive query rows, which
/// it processes in panels of 64 rows.
namespace longhand::cpu::LONGHAND_ISA::attention {

// Initial value of a row's running maximum of scores. It is finite, because the difference of two
// infinite maxima would be NaN.
inline constexpr float lowest = -1e38f;

/// The buffers of one kernel call. The constructor divides the scratch memory `at` among them. If
/// `at` is null, it only computes their total size `floats`.
template <class Product>
struct Space {
  // packed keys and values: either those of one block of 64 keys, or those at the positions of the
  // chunk's queries
  float *keys, *values;
  // The scores of a block of keys with a panel of queries, f32 [block][panel], and the weights p of
  // these keys as packed words (product.h), [block / Product::depth][panel].
  float *scores, *p;
  // ChaCAL and DeltaFormer: the vectors that later rows read instead of v (forward_rows.h), for the
  // keys at the positions of a panel's queries, f32 [panel][value_stride]
  float* solved;
  // for each panel of the chunk: the packed queries, [depth][panel], and the sums over keys of
  // weight times value
  float *queries, *outputs;
  // products on tile registers only: the finished sums of a panel, [panel][value_stride]
  float* rows;
  // One number per query. times: factor of its scores. maxima: its maximum score so far. sums: the
  // sum of its weights so far. shrink: factor that corrects the sums when the maximum grows.
  float *times, *maxima, *sums, *shrink;
  // The shifts c (Scores::decay), which change the score of query i and key j by c_i - c_j: one per
  // query of the chunk, and one per packed key.
  float *query_shifts, *key_shifts;
  // One number per query, for some rules only. For TRA, `pulls` is the term that each positive
  // score adds to a score, `counts` is the number of positive scores so far, and `bounds`
  // (Tra::bound) shows when earlier keys can be skipped.
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

/// For one panel of queries, pointers into the arrays of Space that have one number per query.
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
