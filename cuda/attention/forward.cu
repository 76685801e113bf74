#include "cuda/attention/attend.h"

namespace longhand::cuda {
namespace {

/// Tiles with more keys before them come first, so that none of the long ones is left alone at the
/// end; the heads of a tile side by side.
template <class Product, int slice, int bands>
__global__ void __launch_bounds__(attention_threads, 2) attention_kernel(AttentionTask task) {
  const ScoresView& scores = task.scores;
  const auto heads = static_cast<unsigned>(scores.heads);
  const std::int64_t slot = gridDim.x / heads - 1 - blockIdx.x / heads;
  const SegmentsView& segments = scores.segments;
  const Tile tile = tile_at(segments.query_begin, segments.count, bands * tile_rows, slot);
  if (tile.first >= segments.query_length[tile.segment]) return;
  attend<Product, slice, bands, false>(task, tile, static_cast<int>(blockIdx.x % heads),
                                       static_cast<int>(blockIdx.y));
}

/// Bands of 16 rows a warp: two where sequences are long and two fit.
template <class Product, int slice>
constexpr int most_bands = std::is_same_v<Product, ExactProduct>                    ? 1
                           : slice == 128 && sizeof(typename Product::Element) == 4 ? 1
                                                                                    : 2;

}  // namespace

void CudaBackend::run(const Attention& op) {
  const std::int64_t rows = op.scores.q.data.rows(), count = op.scores.queries.count();
  visit_forward(math(op.scores.math), op, [&](auto product, auto size, const AttentionTask& task) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    const auto with_bands = [&](auto number) {
      constexpr int bands = decltype(number)::value;
      launch(stream_,
             {tile_slots(rows, count, bands * tile_rows) * op.scores.q.heads, task.value_slices},
             attention_threads, forward_bytes<Kind, slice, bands>,
             &attention_kernel<Kind, slice, bands>, task);
    };
    const std::int64_t blocks =
        tile_slots(rows, count, 2 * tile_rows) * op.scores.q.heads * task.value_slices;
    if constexpr (most_bands<Kind, slice> == 2) {
      if (rows >= 256 * count && 2 * blocks >= device_.multiprocessors) {
        return with_bands(std::integral_constant<int, 2>{});
      }
    }
    with_bands(std::integral_constant<int, 1>{});
  });
}

}  // namespace longhand::cuda
