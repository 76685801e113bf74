#include "core/contract/reduce.h"

#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/partial_sums.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

// Column sums of a matrix x. The threads of a block are arranged in `lanes` columns and several
// rows. Each thread sums a pack of columns of x over some rows of x. Threads in the same column of
// this arrangement process the same columns of x, and their sums are then added in order.

template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    column_sums(const T* x, std::int64_t rows, std::int64_t columns, std::int64_t rows_each,
                int lanes, float alpha, Out<float> y) {
  __shared__ float sums[block_threads * width];
  const int lane = static_cast<int>(threadIdx.x) % lanes, deep = block_threads / lanes;
  const std::int64_t j = (std::int64_t{blockIdx.x} * lanes + lane) * width;
  const std::int64_t begin = blockIdx.y * rows_each;
  const std::int64_t end = begin + rows_each < rows ? begin + rows_each : rows;
  Floats<width> sum{};
  if (j < columns) {
#pragma unroll 4
    for (std::int64_t i = begin + static_cast<int>(threadIdx.x) / lanes; i < end; i += deep) {
      const Floats<width> a = load<width>(x + i * columns + j);
#pragma unroll
      for (int k = 0; k < width; ++k) sum.at[k] += a.at[k];
    }
  }
#pragma unroll
  for (int k = 0; k < width; ++k) sums[threadIdx.x * width + k] = sum.at[k];
  __syncthreads();
  const int across = lanes * width;
  for (int c = static_cast<int>(threadIdx.x); c < across; c += block_threads) {
    const std::int64_t column = std::int64_t{blockIdx.x} * across + c;
    if (column >= columns) break;
    float total = 0;
    for (int row = 0; row < deep; ++row) total += sums[row * across + c];
    y.put(blockIdx.y * columns + column, Floats<1>{{alpha * total}});
  }
}

/// A row reduction combines f(x) for all entries x of a row. Entry selects f: x, -x, x^2, or 1 for
/// infinities and NaN and 0 for other numbers. A minimum is computed as the negative of the maximum
/// of -x.
enum class Entry { plain, negative, square, nonfinite };

__device__ __forceinline__ float entry(Entry kind, float x) {
  switch (kind) {
    case Entry::negative:
      return -x;
    case Entry::square:
      return x * x;
    case Entry::nonfinite:
      return fabsf(x) < INFINITY ? 0.0f : 1.0f;
    default:
      return x;
  }
}

/// Reduces pieces of rows. Rows of n entries are divided into `pieces` pieces of up to `each`
/// entries. The pieces of all rows are counted in order, and y_p is `sign` times the reduction of
/// piece p.
template <class F, int width, class Team, class T>
__global__ void __launch_bounds__(block_threads)
    reduce_pieces(const T* x, Entry kind, float sign, float* y, std::int64_t rows, std::int64_t n,
                  std::int64_t pieces, int each) {
  constexpr int teams = Team::per_block(block_threads);
  const std::int64_t p = std::int64_t{blockIdx.x} * teams + Team::index();
  if (p >= rows * pieces) return;
  const RowColumn piece = row_column(p, pieces);
  const std::int64_t first = piece.column * each;
  const int count = static_cast<int>(n - first < each ? n - first : each);
  const T* from = x + piece.row * n + first;
  float result = F::start;
#pragma unroll 4
  for (int j = Team::rank() * width; j < count; j += Team::threads * width) {
    const Floats<width> a = load<width>(from + j);
#pragma unroll
    for (int k = 0; k < width; ++k) result = F{}(result, entry(kind, a.at[k]));
  }
  result = Team::reduce(result, F{});
  if (Team::rank() == 0) y[p] = sign * result;
}

template <class F, class T>
void reduce_rows(CudaBackend& backend, const T* x, Entry kind, float sign, float* y,
                 std::int64_t rows, std::int64_t n) {
  // maximum length of a piece of a row, a multiple of all pack widths
  constexpr std::int64_t longest = 16384;
  // Long rows are divided if there are too few rows to fill the device, or if a row is too long for
  // 32-bit indices.
  const bool cut = n > longest && (rows < 512 || n > (1 << 30));
  const std::int64_t pieces = cut ? (n + longest - 1) / longest : 1;
  const int each = static_cast<int>(cut ? longest : n);
  Tensor of_pieces;
  float *to = y, own_sign = sign;
  if (cut) {
    of_pieces = Tensor(backend, Shape{rows * pieces}, DType::f32);
    to = of_pieces.data<float>();
    own_sign = 1;
  }
  with_width<T>(on_16_bytes(x) && n % full_width<T> == 0, [&](auto width) {
    const auto start = [&](auto team) {
      using Team = decltype(team);
      constexpr int teams = Team::per_block(block_threads);
      launch(backend.stream(), (rows * pieces + teams - 1) / teams, block_threads, 0,
             reduce_pieces<F, width, Team, T>, x, kind, own_sign, to, rows, n, pieces, each);
    };
    if (each <= 1024) {
      start(Lanes<32>{});
    } else {
      start(Block{});
    }
  });
  if (cut) reduce_rows<F, float>(backend, to, Entry::plain, sign, y, rows, pieces);
}

}  // namespace

void run(CudaBackend& backend, const ColumnSum& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* x = op.x.data<T>();
    const std::int64_t rows = op.x.rows(), columns = op.x.columns();
    with_width<T>(on_16_bytes(x) && columns % full_width<T> == 0, [&](auto width) {
      int lanes = 1;
      while (lanes < 32 && lanes * width < columns) lanes *= 2;
      const std::int64_t tiles = (columns + lanes * width - 1) / (lanes * width);
      // The rows are divided into chunks. There are enough chunks for the blocks to fill a device,
      // but so few that each thread sums about 8 rows or more.
      const std::int64_t deep = block_threads / lanes,
                         wanted = 528 / std::max<std::int64_t>(1, tiles);
      const std::int64_t chunks = std::max<std::int64_t>(1, std::min(wanted, rows / (8 * deep)));
      const std::int64_t rows_each = (rows + chunks - 1) / chunks;
      const auto alpha = static_cast<float>(op.alpha);
      const auto start = [&](float factor, Out<float> y) {
        launch(backend.stream(), Grid(tiles, chunks), block_threads, 0, column_sums<width, T>, x,
               rows, columns, rows_each, lanes, factor, y);
      };
      if (chunks == 1) return start(alpha, out<float>(op.y));
      const PartialSums sums(backend, {op.y, {}}, chunks, columns);
      start(1, {sums.parts(0), false});
      sums.combine(backend.stream(), alpha);
    });
  });
}

void run(CudaBackend& backend, const Reduce& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* x = op.x.data<T>();
    float* y = op.y.data<float>();
    const std::int64_t rows = op.x.rows(), n = op.x.columns();
    switch (op.reduction) {
      case Reduction::largest:
        return reduce_rows<Largest>(backend, x, Entry::plain, 1, y, rows, n);
      case Reduction::smallest:
        return reduce_rows<Largest>(backend, x, Entry::negative, -1, y, rows, n);
      case Reduction::square_sum:
        return reduce_rows<Sum>(backend, x, Entry::square, 1, y, rows, n);
      case Reduction::nonfinite:
        return reduce_rows<Sum>(backend, x, Entry::nonfinite, 1, y, rows, n);
      default:
        return reduce_rows<Sum>(backend, x, Entry::plain, 1, y, rows, n);
    }
  });
}

}  // namespace longhand::cuda
