#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/tile_products.h"

/// Scratch memory of the forward pass: the buffers of a chunk of rows and the running state of a
/// panel.
namespace longhand::cpu::LONGHAND_ISA::attention {

// Initial maximum of a row. It is finite, so that the difference of two initial maxima is not NaN.
inline constexpr float lowest = -1e38f;

/// The scratch of one call.
template <class Product>
struct Space {
  // the packed keys and values, either of one block or of the whole chunk
  float *keys, *values;
  float *scores, *p;  // scores, [block][panel]; p in packed words, [block / depth][panel]
  float* solved;  // solved values (forward_rows.h) of the panel's own keys, f32, [panel][stride]
  // for each panel: the packed queries, [depth][panel], and the sums over keys of weight times
  // value
  float *queries, *outputs;
  float* rows;  // the rows of the finished panel, [panel][stride]
  // for each query: factor of the scores, running maximum m, running sum l, factor of earlier sums
  float *times, *maxima, *sums, *shrink;
  // The shifts c (Scores::decay): of each query of the panel, and of each key, either of one block
  // or of the whole chunk.
  float *query_shifts, *key_shifts;
  // Three numbers per query. What they mean depends on the rule. TRA: the factor `pull` of the
  // number of positive scores, this number so far, and an upper bound of the scores of earlier
  // keys.
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

/// The running state of a panel's queries.
struct Running {
  float *times, *shifts;
  float *maxima, *sums, *shrink;
  float *pulls, *counts, *bounds;
};

/// A panel of queries: its first row among the task's queries, its number of rows and its state.
template <class T>
struct PanelRows {
  const AttentionRows<T>& task;
  std::int64_t row, count;
  Running state;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
