#include "cuda/attention/attend.h"

/// Softmax attention with heads wider than 128 columns (wide.h).
namespace longhand::cuda {
namespace {

/// Each thread block computes up to wide_columns columns of one tile of queries of one head, for
/// one of task.key_parts parts of the keys. `parts` is the number of parts of the columns. Tiles
/// are ordered as in attention_kernel (softmax_attention.cu).
template <class Product, bool shifted>
__global__ void __launch_bounds__(wide_threads, 1) wide_kernel(AttentionTask task, int parts) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads, block = static_cast<int>(blockIdx.x);
  const std::int64_t slot = std::int64_t{gridDim.z - blockIdx.z} * gridDim.y - 1 - blockIdx.y;
  const Tile tile = tile_at(segments.query_begin, segments.count, wide_rows, slot);
  if (tile.first >= segments.query_length[tile.segment]) return;
  attend<Product, WideSlice<Product>::value, 1, Walk::wide, shifted>(
      task, tile, block % heads, block / heads % parts, block / heads / parts);
}

}  // namespace

void attend_wide(CudaBackend& backend, const Scores& scores, AttentionTask task) {
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), wide_rows);
  const std::int64_t most = 1 << 15, layers = slots / most + 1;
  const int parts = wide_parts(task.v.width);
  visit_math(backend.math(scores.math), scores.q.data.dtype(), [&](auto product) {
    using Kind = decltype(product);
    task.key_slices = slices(scores.q.width, WideSlice<Kind>::value);
    task.value_slices = slices(task.v.width, WideSlice<Kind>::value);
    launch(backend.stream(),
           {scores.q.heads * parts * task.key_parts, (slots + layers - 1) / layers, layers},
           wide_threads, WideTiles<Kind>::bytes,
           scores.decay ? &wide_kernel<Kind, true> : &wide_kernel<Kind, false>, task, parts);
  });
}

}  // namespace longhand::cuda
