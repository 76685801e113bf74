#pragma once

#include "core/cpu/attention/kernels.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/tile_products.h"

/// Scratch memory of the forward pass: the buffers of a chunk of rows and the running state of a
/// panel.
namespace longhand::cpu::LONGHAND_ISA::attention {

// finite, so that the difference of two initial maxima is not NaN
inline constexpr float lowest = -1e38f;

/// The scratch of one call.
template <class Product>
struct Space {
  float *keys, *values;  // packed words of a block of keys and values, or of the chunk's own
  float *scores, *p;     // [block][panel], and as words [block / depth][panel]
  float* solved;         // the solved values of the panel's own keys in f32, [panel][stride]
  // for each panel: the packed queries, [depth][panel], and the sums over keys
  float *queries, *outputs;
  float* rows;                            // the rows of the finished panel, [panel][stride]
  float *times, *maxima, *sums, *shrink;  // for each query: the scale of its scores, m and l
  // c of each query, and of a block of keys or of the chunk's own keys
  float *query_shifts, *key_shifts;
  float *pulls, *counts, *bounds;  // for each query
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

/// A panel of queries: its first row among the chunk's queries, its number of rows and its state.
template <class T>
struct PanelRows {
  const AttentionRows<T>& task;
  std::int64_t row, count;
  Running state;
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
