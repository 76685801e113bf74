#pragma once

#include "cuda/attention/attend.h"

/// The forward pass of ChaCAL and DeltaFormer. Blocks draw tiles of queries by ticket (tickets.h)
/// and wait for the outputs of earlier tiles (attend.h).
namespace longhand::cuda {

template <class Product, int slice>
constexpr std::size_t chain_bytes = std::max(2 * sizeof(typename Product::Element) *
                                                 tile_size<Product, slice>,
                                             substitution_bytes<slice>);

template <class Product, int slice, Walk walk, bool shifted>
__global__ void __launch_bounds__(attention_threads, blocks_on(80, slice == 64 ? 3 : 0))
    chain_kernel(AttentionTask task) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads, parts = task.value_slices;
  const int ranks = most_tiles(segments.query_length, segments.count);
  for (;;) {
    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const Tile tile{next.segment, next.rank * tile_rows};
    if (tile.first >= segments.query_length[tile.segment]) continue;
    attend<Product, slice, 1, walk, shifted>(task, tile, next.head, next.slice);
    const std::int64_t slot =
        segments.query_begin[tile.segment] / tile_rows + tile.segment + next.rank;
    publish(task.progress + 1 + (slot * heads + next.head) * parts + next.slice);
  }
}

/// Launches chain_kernel for a task that visit_forward() has created and the caller has completed.
template <class Product, int slice, Walk walk, bool shifted>
void launch_chain(CudaBackend& backend, const Scores& scores, AttentionTask task) {
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  const Tensor progress(backend, {progress_words(slots, scores.q.heads, task.value_slices)},
                        DType::i32);
  backend.stream().zero(progress.address(), progress.bytes());
  task.progress = progress.data<std::int32_t>();
  launch(backend.stream(), ticket_blocks(backend, slots * scores.q.heads * task.value_slices),
         attention_threads, chain_bytes<Product, slice>,
         &chain_kernel<Product, slice, walk, shifted>, task);
}

}  // namespace longhand::cuda
