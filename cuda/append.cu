#include "core/contract/heads.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

struct SegmentTable {
  const std::int32_t *begin, *length;
};
SegmentTable table_of(const Segments& segments) {
  return {segments.begin().data<std::int32_t>(), segments.length().data<std::int32_t>()};
}

/// Copies each segment s of x to the end of segment s of y. `from` contains the first row and the
/// length of the segments in x, and `to` those of the segments in y. For each row t of a segment,
///   y(to.begin_s + to.length_s - from.length_s + t) = x(from.begin_s + t).
/// A thread copies `width` entries at a time. Each segment has `blocks` thread blocks, which
/// suffice for a segment of average length. In longer segments, threads copy several times. x_row
/// and y_row are the distances, in entries, from one row to the next.
template <int width, class From, class To>
__global__ void __launch_bounds__(block_threads)
    append(const From* x, std::int64_t x_row, SegmentTable from, To* y, std::int64_t y_row,
           SegmentTable to, std::int64_t packs, std::int64_t blocks) {
  const std::int64_t s = blockIdx.x / blocks;
  const std::int64_t length = from.length[s], first = from.begin[s];
  const std::int64_t place = to.begin[s] + to.length[s] - length;
  for (std::int64_t item = blockIdx.x % blocks * block_threads + threadIdx.x; item < length * packs;
       item += blocks * block_threads) {
    const RowColumn at = row_column(item, packs);
    const std::int64_t column = at.column * width;
    store(y + (place + at.row) * y_row + column,
          load<width>(x + (first + at.row) * x_row + column));
  }
}

}  // namespace

void run(CudaBackend& backend, const Append& op) {
  const std::int64_t count = op.from.count(), columns = op.x.heads * op.x.width;
  if (count == 0) return;
  // A recorded graph may run again with other segment lengths but with the same grid. The grid
  // therefore has enough blocks for the average length. In longer segments, threads copy several
  // times.
  const std::int64_t average = (op.from.tokens() + count - 1) / count;
  visit_activation(op.x.data.dtype(), [&]<class From>(From) {
    visit_activation(op.y.data.dtype(), [&]<class To>(To) {
      const From* x = op.x.data.data<From>() + op.x.first_column;
      To* y = op.y.data.data<To>() + op.y.first_column;
      const std::int64_t x_row = op.x.data.columns(), y_row = op.y.data.columns();
      using Narrow = std::conditional_t<sizeof(From) < sizeof(To), From, To>;
      constexpr int full = full_width<Narrow>;
      const bool fits =
          on_16_bytes(x, y) && x_row % full == 0 && y_row % full == 0 && columns % full == 0;
      with_width<Narrow>(fits, [&](auto width) {
        const std::int64_t packs = columns / width;
        const std::int64_t blocks = grid_of(average * packs);
        launch(backend.stream(), count * blocks, block_threads, 0, append<width, From, To>, x,
               x_row, table_of(op.from), y, y_row, table_of(op.to), packs, blocks);
      });
    });
  });
}

}  // namespace longhand::cuda
