#include "core/contract/triangle.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// A batch of systems op(a) y = b with triangular matrices a [n, n] and right-hand sides b [n, m].
/// op(a) is the transpose of a if `transpose` is set, otherwise a. The columns of b are divided
/// into panels. If `forward` is true, op(a) is lower triangular, and the first row is solved first.
/// Otherwise op(a) is upper triangular, and the last row is solved first.
template <class T>
struct Systems {
  const T* a;
  const T* b;
  T* y;
  // y in f32, which is read again when later rows are solved. If y is f32, this is the memory of y.
  float* solved;
  std::int64_t n, m, panels;
  bool transpose, forward, unit;
};

constexpr int tile = 32;  // number of rows in a tile; each lane of a warp processes one row
constexpr int warps = block_threads / warp_size;
constexpr int each = 8;              // number of columns of b that a warp solves
constexpr int panel = warps * each;  // number of columns of b that a block solves

/// Solves op(a) y = b for one matrix and one panel of columns of b. With rows numbered in the order
/// in which they are solved, op(a) is lower triangular, and
///   y_r = (b_r - sum_{k < r} op(a)_rk y_k) / op(a)_rr.
/// Rows are processed in tiles. For each tile, the terms of all earlier tiles are first subtracted,
/// one tile after the other. Then the rows of the tile are solved one by one.
template <class T>
__global__ void __launch_bounds__(block_threads) solve(const Systems<T> s) {
  // A tile of op(a), [row][column]. Each row is padded by one entry, so that the entries of a
  // column are in different banks of shared memory.
  __shared__ float a_tile[tile][tile + 1];
  __align__(16) __shared__ float y_tile[tile][panel];
  const std::int64_t matrix = blockIdx.x / s.panels, n = s.n, m = s.m;
  const std::int64_t first_column = blockIdx.x % s.panels * panel;
  const T* a = s.a + matrix * n * n;
  const std::int64_t of_matrix = matrix * n * m;
  const int lane = lane_index(), thread = static_cast<int>(threadIdx.x);
  const int own_columns = warp_index() * each;  // first column of this warp in the panel
  const auto index = [&](std::int64_t r) { return s.forward ? r : n - 1 - r; };

  // Loads the tile of op(a) with rows [first_row, first_row + 32) and columns [first_k, first_k +
  // 32) into a_tile. Rows and columns are numbered in the order in which rows are solved. Entries
  // above the diagonal or outside of the matrix are zero.
  const auto load_a = [&](std::int64_t first_row, std::int64_t first_k) {
#pragma unroll
    for (int entry = thread; entry < tile * tile; entry += block_threads) {
      // Neighbouring threads read neighbouring addresses.
      const int r = s.transpose ? entry % tile : entry / tile;
      const int k = s.transpose ? entry / tile : entry % tile;
      float value = 0;
      if (first_row + r < n && first_k + k < n && first_k + k <= first_row + r) {
        const std::int64_t i = index(first_row + r), j = index(first_k + k);
        value = to_float(s.transpose ? a[j * n + i] : a[i * n + j]);
      }
      a_tile[r][k] = value;
    }
  };

  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t own_row = first + lane;
    const bool has_row = own_row < n;
    const std::int64_t own_at = of_matrix + (has_row ? index(own_row) : 0) * m + first_column;
    float rest[each];
#pragma unroll
    for (int c = 0; c < each; ++c) {
      const bool inside = has_row && first_column + own_columns + c < m;
      rest[c] = inside ? to_float(s.b[own_at + own_columns + c]) : 0.0f;
    }

    for (std::int64_t done = 0; done < first; done += tile) {
      __syncthreads();  // after this barrier, a_tile and y_tile may be overwritten
      load_a(first, done);
#pragma unroll
      for (int entry = thread; entry < tile * panel; entry += block_threads) {
        const int k = entry / panel, c = entry % panel;
        const bool inside = first_column + c < m;
        y_tile[k][c] = inside ? s.solved[of_matrix + index(done + k) * m + first_column + c] : 0.0f;
      }
      __syncthreads();
#pragma unroll 8
      for (int k = 0; k < tile; ++k) {
        const float factor = a_tile[lane][k];
        const Floats<4> low = load<4>(&y_tile[k][own_columns]);
        const Floats<4> high = load<4>(&y_tile[k][own_columns + 4]);
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          rest[c] -= factor * low.at[c];
          rest[4 + c] -= factor * high.at[c];
        }
      }
    }

    __syncthreads();
    load_a(first, first);
    __syncthreads();
    const float inverse = s.unit || !has_row ? 1.0f : 1.0f / a_tile[lane][lane];
#pragma unroll 4
    for (int k = 0; k < tile; ++k) {
      const float factor = lane > k ? a_tile[lane][k] : 0.0f;
#pragma unroll
      for (int c = 0; c < each; ++c) {
        if (lane == k) rest[c] *= inverse;
        const float y = __shfl_sync(full_warp, rest[c], k);
        rest[c] -= factor * y;
      }
    }
#pragma unroll
    for (int c = 0; c < each; ++c) {
      if (!has_row || first_column + own_columns + c >= m) continue;
      const std::int64_t at = own_at + own_columns + c;
      s.solved[at] = rest[c];
      if constexpr (!std::is_same_v<T, float>) s.y[at] = from_float<T>(rest[c]);
    }
  }
}

}  // namespace

void run(CudaBackend& backend, const SolveTriangular& op) {
  visit_activation(op.a.dtype(), [&]<class T>(T) {
    const std::int64_t n = op.a.columns(), m = op.b.columns();
    if (n == 0 || m == 0) return;
    const std::int64_t batch = op.a.rows() / n, panels = (m + panel - 1) / panel;
    Tensor wide;
    if constexpr (!std::is_same_v<T, float>) wide = Tensor(backend, op.y.shape(), DType::f32);
    const Tensor& solved = wide ? wide : op.y;
    launch(backend.stream(), batch * panels, block_threads, 0, solve<T>,
           Systems<T>{.a = op.a.data<T>(),
                      .b = op.b.data<T>(),
                      .y = op.y.data<T>(),
                      .solved = solved.data<float>(),
                      .n = n,
                      .m = m,
                      .panels = panels,
                      .transpose = op.transpose,
                      .forward = op.upper == op.transpose,
                      .unit = op.unit});
  });
}

}  // namespace longhand::cuda
