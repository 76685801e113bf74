#include <algorithm>
#include <cmath>

#include "core/backend.h"
#include "core/contract/gather.h"

#include "core/contract/elementwise.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/partial_sums.h"
#include "cuda/row.h"
#include "cuda/visit.h"

/// The gradient of an embedding table: row v of dtable is the sum of dy_i over all rows i with
/// ids_i = v, in the order of i. Ids out of range are ignored.
///
/// For a small vocabulary, each chunk of rows is summed into its own table in shared memory, and
/// these tables are added. For a large vocabulary, the rows are sorted by id. Pieces of the sorted
/// rows are summed independently. Then, for each id that spans several pieces, the sums of these
/// pieces are added in order. The rows of a very frequent id are therefore summed by several
/// blocks.
namespace longhand::cuda {
namespace {

constexpr std::int64_t small_vocabulary = 192;
constexpr int small_tile = 64;  // columns per block, one per thread

/// parts_cv = sum of dy_i over the rows i of chunk c with ids_i = v. A chunk has rows_each
/// consecutive rows. Each thread computes one column of a chunk.
template <class T>
__global__ void __launch_bounds__(small_tile)
    add_into_tables(const std::int32_t* ids, const T* dy, float* parts, std::int64_t rows,
                    std::int64_t n, std::int64_t vocabulary, std::int64_t rows_each) {
  float* sums = shared_memory<float>() + threadIdx.x;  // sums[v * small_tile] is the sum of id v
  const std::int64_t column = std::int64_t{blockIdx.x} * small_tile + threadIdx.x;
  const std::int64_t begin = blockIdx.y * rows_each;
  const std::int64_t end = begin + rows_each < rows ? begin + rows_each : rows;
  if (column >= n) return;
  for (std::int64_t v = 0; v < vocabulary; ++v) sums[v * small_tile] = 0;
  constexpr int together = 8;  // number of rows that are loaded before the first of them is added
  for (std::int64_t i = begin; i < end; i += together) {
    float values[together];
    std::int32_t at[together];
#pragma unroll
    for (int k = 0; k < together; ++k) {
      at[k] = i + k < end ? ids[i + k] : -1;
      values[k] = i + k < end ? to_float(dy[(i + k) * n + column]) : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < together; ++k) {
      if (at[k] >= 0 && at[k] < vocabulary) sums[at[k] * small_tile] += values[k];
    }
  }
  float* part = parts + blockIdx.y * vocabulary * n + column;
  for (std::int64_t v = 0; v < vocabulary; ++v) part[v * n] = sums[v * small_tile];
}

template <class T>
void by_tables(CudaBackend& backend, const EmbeddingBackward& op) {
  const std::int64_t rows = op.dy.rows(), n = op.dy.columns();
  const std::int64_t vocabulary = op.dtable.tensor.rows();
  if (vocabulary == 0) return;
  const std::int64_t tiles = (n + small_tile - 1) / small_tile;
  // Two limits apply if there are several chunks. A chunk has on average at least four rows for
  // each id of the vocabulary. The launch has at most 2112 blocks, which suffice to fill a device.
  const std::int64_t chunks =
      std::clamp<std::int64_t>(rows / std::max<std::int64_t>(32, 4 * vocabulary), 1,
                               std::max<std::int64_t>(1, 2112 / std::max<std::int64_t>(1, tiles)));
  const std::int64_t rows_each = (rows + chunks - 1) / chunks;
  const PartialSums sums(backend, {op.dtable, {}}, chunks, vocabulary * n);
  launch(backend.stream(), Grid(tiles, chunks), small_tile,
         static_cast<std::size_t>(vocabulary * small_tile) * sizeof(float), add_into_tables<T>,
         op.ids.data<std::int32_t>(), op.dy.data<T>(), sums.parts(0), rows, n, vocabulary,
         rows_each);
  sums.combine(backend.stream(), 1);
}

// The following kernels sort the rows by id with a counting sort. Each block sorts one chunk of
// rows.

constexpr int chunk_rows = 1024;

/// Computes rank_i, the number of earlier rows in the chunk of row i that have the same id, and
/// counts_cv, the number of rows of chunk c with id v. `counts` must be zero at the start.
__global__ void __launch_bounds__(chunk_rows)
    rank_in_chunks(const std::int32_t* ids, std::int32_t* rank, std::int32_t* counts,
                   std::int64_t rows, std::int64_t vocabulary) {
  __align__(16) __shared__ std::int32_t of_chunk[chunk_rows];
  const std::int64_t i = thread_in_grid();
  const int own = static_cast<int>(threadIdx.x);
  const std::int32_t id = i < rows ? ids[i] : -1;
  of_chunk[own] = id;
  __syncthreads();
  if (id < 0 || id >= vocabulary) return;
  int before = 0, after = 0;
#pragma unroll 8
  for (int k = 0; k < chunk_rows; ++k) {
    const int same = of_chunk[k] == id ? 1 : 0;
    before += k < own ? same : 0;
    after += k > own ? same : 0;
  }
  rank[i] = before;
  if (after == 0) counts[blockIdx.x * vocabulary + id] = before + 1;
}

/// Replaces counts_cv, the number of rows with id v in chunk c, by the number of such rows in all
/// chunks before c. Sets first_v to the number of rows with id v in all chunks.
__global__ void __launch_bounds__(block_threads)
    add_up_chunks(std::int32_t* counts, std::int32_t* first, std::int64_t chunks,
                  std::int64_t vocabulary) {
  const std::int64_t v = thread_in_grid();
  if (v >= vocabulary) return;
  std::int32_t sum = 0;
#pragma unroll 4
  for (std::int64_t c = 0; c < chunks; ++c) {
    const std::int32_t count = counts[c * vocabulary + v];
    counts[c * vocabulary + v] = sum;
    sum += count;
  }
  first[v] = sum;
}

/// Replaces first_v, for v = 0 .. count - 1, by the sum of all earlier entries of `first`. Runs as
/// one block, in which each thread sums consecutive entries.
__global__ void __launch_bounds__(block_threads) scan(std::int32_t* first, std::int64_t count) {
  __shared__ std::int32_t sums[block_threads];
  const int own = static_cast<int>(threadIdx.x);
  const std::int64_t each = (count + block_threads - 1) / block_threads, begin = own * each;
  const std::int64_t end = begin + each < count ? begin + each : count;
  std::int32_t sum = 0;
  for (std::int64_t v = begin; v < end; ++v) sum += first[v];
  sums[own] = sum;
  __syncthreads();
  std::int32_t before = 0;
  for (int k = 0; k < own; ++k) before += sums[k];
  for (std::int64_t v = begin; v < end; ++v) {
    const std::int32_t value = first[v];
    first[v] = before;
    before += value;
  }
}

__global__ void __launch_bounds__(chunk_rows)
    place_rows(const std::int32_t* ids, const std::int32_t* rank, const std::int32_t* counts,
               const std::int32_t* first, std::int32_t* order, std::int64_t rows,
               std::int64_t vocabulary) {
  const std::int64_t i = thread_in_grid();
  if (i >= rows) return;
  const std::int32_t id = ids[i];
  if (id < 0 || id >= vocabulary) return;
  order[first[id] + counts[blockIdx.x * vocabulary + id] + rank[i]] = static_cast<std::int32_t>(i);
}

/// The rows of dy sorted by id: order[first[v]] to order[first[v + 1] - 1] are the rows of id v.
/// The sorted rows are divided into pieces of `each` rows.
template <class T>
struct SortedRows {
  const std::int32_t *ids, *order, *first;
  const T* dy;
  std::int64_t n, vocabulary;
  std::int64_t each;  // rows per piece
  // [pieces, n]: for each piece, the sum of the rows of its first id. It is stored only if the
  // previous piece also has rows of this id.
  float* heads;
  // [pieces, n]: for each piece, the sum of the rows of its last id. It is stored only if the rows
  // of this id begin in the piece and continue in the next piece.
  float* tails;
  float* dtable;
  bool add;

  __device__ __forceinline__ std::int64_t count() const { return first[vocabulary]; }
};

/// The first column of dy that this lane processes. A lane processes `width` adjacent columns, so a
/// warp processes 32 * width adjacent columns.
template <int width>
__device__ __forceinline__ std::int64_t own_column() {
  return (std::int64_t{blockIdx.y} * warp_size + lane_index()) * width;
}

template <int width, class T>
__global__ void __launch_bounds__(block_threads) add_up_pieces(const SortedRows<T> s) {
  const std::int64_t piece = std::int64_t{blockIdx.x} * (block_threads / warp_size) + warp_index();
  const std::int64_t begin = piece * s.each, count = s.count(), column = own_column<width>();
  const std::int64_t end = begin + s.each < count ? begin + s.each : count;
  if (begin >= end || column >= s.n) return;

  Floats<width> sum{};
  std::int32_t id = s.ids[s.order[begin]];
  const auto put = [&] {
    const bool from_before = s.first[id]<begin, goes_on = s.first[id + 1]> end;
    if (from_before) {
      store(s.heads + piece * s.n + column, sum);
    } else if (goes_on) {
      store(s.tails + piece * s.n + column, sum);
    } else {
      Out<float>{s.dtable, s.add}.put(id * s.n + column, sum);
    }
  };
  constexpr int together = 8;
  for (std::int64_t at = begin; at < end; at += together) {
    Floats<width> rows[together];
    std::int32_t of_row[together];
#pragma unroll
    for (int k = 0; k < together; ++k) {
      if (at + k >= end) continue;
      const std::int64_t i = s.order[at + k];
      of_row[k] = s.ids[i];
      rows[k] = load<width>(s.dy + i * s.n + column);
    }
#pragma unroll
    for (int k = 0; k < together; ++k) {
      if (at + k >= end) continue;
      if (of_row[k] != id) {
        put();
        id = of_row[k];
        sum = {};
      }
#pragma unroll
      for (int c = 0; c < width; ++c) sum.at[c] += rows[k].at[c];
    }
  }
  put();
}

/// Stores the sum of each id whose rows span several pieces of the sorted rows. It is `tails` of
/// the id's first piece plus `heads` of the following pieces.
template <int width, class T>
__global__ void __launch_bounds__(block_threads) join_pieces(const SortedRows<T> s) {
  const std::int64_t piece = std::int64_t{blockIdx.x} * (block_threads / warp_size) + warp_index();
  const std::int64_t begin = piece * s.each, end = begin + s.each, column = own_column<width>();
  if (end >= s.count() || column >= s.n) return;
  const std::int64_t id = s.ids[s.order[end - 1]];
  if (s.first[id] < begin || s.first[id + 1] <= end) return;
  Floats<width> sum = load<width>(s.tails + piece * s.n + column);
  const std::int64_t last = (s.first[id + 1] - 1) / s.each;
#pragma unroll 4
  for (std::int64_t p = piece + 1; p <= last; ++p) {
    const Floats<width> more = load<width>(s.heads + p * s.n + column);
#pragma unroll
    for (int c = 0; c < width; ++c) sum.at[c] += more.at[c];
  }
  Out<float>{s.dtable, s.add}.put(id * s.n + column, sum);
}

template <class T>
void by_sorting(CudaBackend& backend, const EmbeddingBackward& op) {
  Stream& stream = backend.stream();
  const std::int64_t rows = op.dy.rows(), n = op.dy.columns();
  const std::int64_t vocabulary = op.dtable.tensor.rows();
  const auto* ids = op.ids.data<std::int32_t>();
  LONGHAND_CHECK(rows < (std::int64_t{1} << 31), EmbeddingBackward::name,
                 ": expected fewer than 2^31 rows on cuda, got ", rows);
  if (!op.dtable.add) backend(Fill{.value = 0, .y = op.dtable.tensor});

  const std::int64_t chunks = (rows + chunk_rows - 1) / chunk_rows;
  const auto integers = [&](const Shape& shape) { return Tensor(backend, shape, DType::i32); };
  const Tensor rank = integers({rows}), order = integers({rows});
  const Tensor counts = Tensor::zeros(backend, {chunks, vocabulary}, DType::i32);
  const Tensor first = Tensor::zeros(backend, {vocabulary + 1}, DType::i32);
  launch(stream, chunks, chunk_rows, 0, rank_in_chunks, ids, rank.data<std::int32_t>(),
         counts.data<std::int32_t>(), rows, vocabulary);
  launch(stream, grid_of(vocabulary), block_threads, 0, add_up_chunks, counts.data<std::int32_t>(),
         first.data<std::int32_t>(), chunks, vocabulary);
  launch(stream, 1, block_threads, 0, scan, first.data<std::int32_t>(), vocabulary + 1);
  launch(stream, chunks, chunk_rows, 0, place_rows, ids, rank.data<std::int32_t>(),
         counts.data<std::int32_t>(), first.data<std::int32_t>(), order.data<std::int32_t>(), rows,
         vocabulary);

  // A piece has about sqrt(rows) rows, and there are about as many pieces. Even if all rows have
  // the same id, a thread adds only about sqrt(rows) rows and later sqrt(rows) partial sums.
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(rows)));
  const std::int64_t each = std::max<std::int64_t>(32, root), pieces = (rows + each - 1) / each;
  const Tensor heads(backend, {pieces, n}, DType::f32), tails(backend, {pieces, n}, DType::f32);
  const SortedRows<T> sorted{.ids = ids,
                             .order = order.data<std::int32_t>(),
                             .first = first.data<std::int32_t>(),
                             .dy = op.dy.data<T>(),
                             .n = n,
                             .vocabulary = vocabulary,
                             .each = each,
                             .heads = heads.data<float>(),
                             .tails = tails.data<float>(),
                             .dtable = op.dtable.tensor.data<float>(),
                             .add = op.dtable.add};
  const bool fits = on_16_bytes(sorted.dy, sorted.dtable) && n % full_width<T> == 0;
  with_width<T>(fits, [&](auto width) {
    constexpr int warps = block_threads / warp_size;
    const Grid grid((pieces + warps - 1) / warps,
                    (n + warp_size * width - 1) / (warp_size * width));
    launch(stream, grid, block_threads, 0, add_up_pieces<width, T>, sorted);
    launch(stream, grid, block_threads, 0, join_pieces<width, T>, sorted);
  });
}

}  // namespace

void run(CudaBackend& backend, const EmbeddingBackward& op) {
  if (!op.dtable) return;
  visit_activation(op.dy.dtype(), [&]<class T>(T) {
    op.dtable.tensor.rows() <= small_vocabulary ? by_tables<T>(backend, op)
                                                : by_sorting<T>(backend, op);
  });
}

}  // namespace longhand::cuda
