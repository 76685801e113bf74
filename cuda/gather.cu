#include "core/contract/gather.h"

#include "cuda/cuda_backend.h"
#include "cuda/first_largest.h"
#include "cuda/launch.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Row i of y is row ids_i of the table. Each thread copies `width` neighbouring entries.
template <int width, class From, class To>
__global__ void __launch_bounds__(block_threads)
    embedding(const From* table, std::int64_t vocabulary, const std::int32_t* ids, To* y,
              std::int64_t size, std::int64_t n) {
  const std::int64_t i = thread_in_grid() * width;
  if (i >= size) return;
  const RowColumn at = row_column(i, n);
  const std::int64_t id = ids[at.row];
  Floats<width> floats;
  if (id >= 0 && id < vocabulary) {
    floats = load<width>(table + id * n + at.column);
  } else {
#pragma unroll
    for (int k = 0; k < width; ++k) floats.at[k] = NAN;
  }
  store(y + i, floats);
}

/// y_ij is entry index_ij of row i of x, or NaN if x has no such column.
template <class T>
__global__ void __launch_bounds__(block_threads)
    gather(const T* x, std::int64_t n, const std::int32_t* index, T* y, std::int64_t size,
           std::int64_t k) {
  const std::int64_t i = thread_in_grid();
  if (i >= size) return;
  const std::int64_t column = index[i];
  const bool sound = column >= 0 && column < n;
  y[i] = sound ? x[row_column(i, k).row * n + column] : from_float<T>(NAN);
}

/// dx_ic is the sum of dy_ij over all j < k with index_ij = c, computed in f32 and rounded once.
/// Each thread computes one entry dx_ic and reads all k indices of row i. This is fast enough,
/// because each row of x has few indices or few columns.
template <class T>
__global__ void __launch_bounds__(block_threads)
    gather_backward(const std::int32_t* index, const T* dy, Out<T> dx, std::int64_t size,
                    std::int64_t n, std::int64_t k) {
  const std::int64_t i = thread_in_grid();
  if (i >= size) return;
  const RowColumn at = row_column(i, n);
  float sum = dx.add ? to_float(dx.y[i]) : 0.0f;
  for (std::int64_t j = at.row * k; j < (at.row + 1) * k; ++j) {
    if (index[j] == at.column) sum += to_float(dy[j]);
  }
  dx.y[i] = from_float<T>(sum);
}

/// y_i is the first column that contains the maximum of row i of x.
template <int width, class Team, class T>
__global__ void __launch_bounds__(block_threads)
    argmax(const T* all_x, std::int32_t* y, std::int64_t rows, int n) {
  constexpr int teams = Team::per_block(block_threads);
  const std::int64_t i = std::int64_t{blockIdx.x} * teams + Team::index();
  if (i >= rows) return;
  const T* x = all_x + i * n;
  // All comparisons with NaN are false, so a NaN in the first column stays the maximum, as in a
  // simple loop.
  FirstLargest best{to_float(x[0]), 0};
#pragma unroll 4
  for (int j = Team::rank() * width; j < n; j += Team::threads * width) {
    const Floats<width> a = load<width>(x + j);
#pragma unroll
    for (int k = 0; k < width; ++k) best.see(a.at[k], j + k);
  }
  best = Team::reduce(best, FirstLargest::Better{});
  if (Team::rank() == 0) y[i] = best.index;
}

}  // namespace

void run(CudaBackend& backend, const Embedding& op) {
  visit_activation(op.table.dtype(), [&]<class From>(From) {
    visit_activation(op.y.dtype(), [&]<class To>(To) {
      const From* table = op.table.data<From>();
      To* y = op.y.data<To>();
      const std::int64_t size = op.y.size(), n = op.y.columns();
      using Narrow = std::conditional_t<sizeof(From) < sizeof(To), From, To>;
      const bool fits = on_16_bytes(table, y) && n % full_width<Narrow> == 0;
      with_width<Narrow>(fits, [&](auto width) {
        launch(backend.stream(), grid_of(size / width), block_threads, 0,
               embedding<width, From, To>, table, op.table.rows(), op.ids.data<std::int32_t>(), y,
               size, n);
      });
    });
  });
}

void run(CudaBackend& backend, const Gather& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    launch(backend.stream(), grid_of(op.y.size()), block_threads, 0, gather<T>, op.x.data<T>(),
           op.x.columns(), op.index.data<std::int32_t>(), op.y.data<T>(), op.y.size(),
           op.index.columns());
  });
}

void run(CudaBackend& backend, const GatherBackward& op) {
  if (!op.dx) return;
  visit_activation(op.dy.dtype(), [&]<class T>(T) {
    const std::int64_t size = op.dx.tensor.size();
    launch(backend.stream(), grid_of(size), block_threads, 0, gather_backward<T>,
           op.index.data<std::int32_t>(), op.dy.data<T>(), out<T>(op.dx), size,
           op.dx.tensor.columns(), op.index.columns());
  });
}

void run(CudaBackend& backend, const Argmax& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* x = op.x.data<T>();
    const int n = row_length(Argmax::name, op.x);
    with_width<T>(on_16_bytes(x) && n % full_width<T> == 0, [&](auto width) {
      const auto start = [&](auto team) {
        using Team = decltype(team);
        constexpr int teams = Team::per_block(block_threads);
        launch(backend.stream(), (op.x.rows() + teams - 1) / teams, block_threads, 0,
               argmax<width, Team, T>, x, op.y.data<std::int32_t>(), op.x.rows(), n);
      };
      if (n <= 1024) {
        start(Lanes<32>{});
      } else {
        start(Block{});
      }
    });
  });
}

}  // namespace longhand::cuda
