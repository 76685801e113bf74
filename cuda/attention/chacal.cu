#include "core/contract/chacal.h"
#include "cuda/attention/attend.h"

namespace longhand::cuda {
namespace {

template <class Product, int slice>
constexpr std::size_t chacal_bytes = std::max(2 * sizeof(typename Product::Element) *
                                                  tile_size<Product, slice>,
                                              substitution_bytes<slice>);

template <class Product, int slice, bool shifted>
__global__ void __launch_bounds__(attention_threads, blocks_on(80, slice == 64 ? 3 : 0))
    chacal_kernel(AttentionTask task) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads, parts = task.value_slices;
  const int ranks = most_tiles(segments.query_length, segments.count);
  for (;;) {
    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const Tile tile{next.segment, next.rank * tile_rows};
    if (tile.first >= segments.query_length[tile.segment]) continue;
    attend<Product, slice, 1, Walk::chacal, shifted>(task, tile, next.head, next.slice);
    const std::int64_t slot =
        segments.query_begin[tile.segment] / tile_rows + tile.segment + next.rank;
    publish(task.progress + 1 + (slot * heads + next.head) * parts + next.slice);
  }
}

}  // namespace

void run(CudaBackend& backend, const Chacal& op) {
  const std::int64_t rows = op.scores.q.data.rows(), count = op.scores.queries.count();
  if (rows == 0) return;
  visit_forward(backend.math(op.scores.math), op, op.sink, op.log_denominator,
                [&](auto product, auto size, auto shift, AttentionTask task) {
                  using Kind = decltype(product);
                  constexpr int slice = decltype(size)::value;
                  const std::int64_t slots = tile_slots(rows, count, tile_rows);
                  const Tensor progress(
                      backend, {progress_words(slots, op.scores.q.heads, task.value_slices)},
                      DType::i32);
                  backend.stream().zero(progress.address(), progress.bytes());
                  task.progress = progress.data<std::int32_t>();
                  task.earlier = view(op.earlier);
                  task.gamma = op.gamma.data<float>();
                  task.gamma_step = op.gamma.size() == 1 ? 0 : 1;
                  launch(backend.stream(),
                         ticket_blocks(backend, slots * op.scores.q.heads * task.value_slices),
                         attention_threads, chacal_bytes<Kind, slice>,
                         &chacal_kernel<Kind, slice, decltype(shift)::value>, task);
                });
}

}  // namespace longhand::cuda
