#include "core/contract/norm.h"
#include "cuda/cuda_backend.h"
#include "cuda/launch.h"
#include "cuda/partial_sums.h"
#include "cuda/row.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

/// Arguments of the backward passes of LayerNorm and RmsNorm for rows of n entries. For RmsNorm,
/// `mean` is null. The forward pass multiplied column j by offset + gain_j. dgain and dbias receive
/// n partial sums from each block. dx, dgain and dbias may be null.
template <class T>
struct NormBackward {
  const T *x, *dy;
  const float *gain, *mean, *rstd;
  float offset;
  Out<T> dx;
  float *dgain, *dbias;
  std::int64_t rows;
  int n;
};

/// One sum over rows for each column that a thread processes. The sums are in registers if the
/// layout also keeps the rows in registers. Otherwise they are in memory that no other thread
/// accesses.
template <class Layout>
class ColumnSums {
 public:
  static constexpr int width = Layout::width, kept = Layout::kept;

  /// `sums` is memory for the block's n sums, with undefined contents. It is null if the sums are
  /// not required.
  __device__ __forceinline__ ColumnSums(float* sums, int n) : sums_(sums), n_(n) {
    constexpr Floats<width> zeros{};
    if constexpr (kept > 0) {
#pragma unroll
      for (int slot = 0; slot < kept; ++slot) in_registers_[slot] = zeros;
    } else if (sums) {
      Layout::each(n, [&](int, int j) { store(sums_ + j, zeros); });
    }
  }
  __device__ __forceinline__ void add(int slot, int j, const Floats<width>& more) {
    if (!sums_) return;
    if constexpr (kept > 0) {
#pragma unroll
      for (int k = 0; k < width; ++k) in_registers_[slot].at[k] += more.at[k];
    } else {
      Floats<width> sum = load<width>(sums_ + j);
#pragma unroll
      for (int k = 0; k < width; ++k) sum.at[k] += more.at[k];
      store(sums_ + j, sum);
    }
  }
  /// If the sums are in registers, adds up the sums of the block's teams in the order of the teams
  /// and stores the totals in memory. All threads of the block must call finish().
  __device__ __forceinline__ void finish() {
    if constexpr (kept > 0) {
      constexpr int teams = Layout::Team::per_block(block_threads);
      constexpr int columns = Layout::Team::threads * width;
      __shared__ float of_team[teams][columns];
      if (!sums_) return;
#pragma unroll
      for (int slot = 0; slot < kept; ++slot) {
        if (slot * columns >= n_) break;
        __syncthreads();
#pragma unroll
        for (int k = 0; k < width; ++k) {
          of_team[Layout::Team::index()][Layout::Team::rank() * width + k] =
              in_registers_[slot].at[k];
        }
        __syncthreads();
        const int c = static_cast<int>(threadIdx.x);
        if (c < columns && slot * columns + c < n_) {
          float sum = 0;
#pragma unroll
          for (int team = 0; team < teams; ++team) sum += of_team[team][c];
          sums_[slot * columns + c] = sum;
        }
      }
    }
  }

 private:
  float* sums_;
  int n_;
  Floats<width> in_registers_[kept > 0 ? kept : 1];
};

/// For each row, adds the row's contributions to dgain and dbias and computes two sums over the
/// row. Then computes the row of dx from these two sums.
template <class Layout, bool centered, class T>
__global__ void __launch_bounds__(block_threads, 1) norm_backward(const NormBackward<T> r) {
  constexpr int width = Layout::width;
  using Team = typename Layout::Team;
  const std::int64_t block = blockIdx.x;
  ColumnSums<Layout> dgain(r.dgain ? r.dgain + block * r.n : nullptr, r.n);
  ColumnSums<Layout> dbias(centered && r.dbias ? r.dbias + block * r.n : nullptr, r.n);
  const auto count = static_cast<float>(r.n);

  constexpr int teams = Team::per_block(block_threads);
  for (std::int64_t i = Layout::row(); i < r.rows; i += std::int64_t{gridDim.x} * teams) {
    const Row<T, Layout> x(r.x + i * r.n, r.n), dy(r.dy + i * r.n, r.n);
    const float mean = centered ? r.mean[i] : 0.0f, rstd = r.rstd[i];

    float sum_g = 0, sum_gh = 0;
    Layout::each(r.n, [&](int slot, int j) {
      const Floats<width> a = x.at(slot, j), d = dy.at(slot, j), gain = load<width>(r.gain + j);
      Floats<width> dh;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float h = (a.at[k] - mean) * rstd;
        const float g = d.at[k] * (r.offset + gain.at[k]);
        sum_g += g;
        sum_gh += g * h;
        dh.at[k] = d.at[k] * h;
      }
      dgain.add(slot, j, dh);
      if constexpr (centered) dbias.add(slot, j, d);
    });
    if (!r.dx.y) continue;
    const float mean_g = centered ? Team::sum(sum_g) / count : 0.0f;
    const float mean_gh = Team::sum(sum_gh) / count;
    Layout::each(r.n, [&](int slot, int j) {
      const Floats<width> a = x.at(slot, j), d = dy.at(slot, j), gain = load<width>(r.gain + j);
      Floats<width> dx;
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float h = (a.at[k] - mean) * rstd;
        const float g = d.at[k] * (r.offset + gain.at[k]);
        dx.at[k] = rstd * (g - mean_g - h * mean_gh);
      }
      r.dx.put(i * r.n + j, dx);
    });
  }
  dgain.finish();
  if constexpr (centered) dbias.finish();
}

/// Maximum number of blocks. If there are more rows, a block processes several rows in turn. The
/// maximum is large enough to fill a device, but so small that the blocks' partial sums take little
/// memory compared with the rows.
constexpr std::int64_t most_blocks = 264;

/// Runs LayerNormBackward or RmsNormBackward. For RmsNormBackward, `mean` and `dbias` are empty.
template <bool centered, class Op>
void backward(CudaBackend& backend, Stream& stream, const Op& op, const Tensor& mean, double offset,
              const Target& dbias) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    NormBackward<T> rows{.x = op.x.template data<T>(),
                         .dy = op.dy.template data<T>(),
                         .gain = op.gain.template data<float>(),
                         .mean = data_or_null<float>(mean),
                         .rstd = op.rstd.template data<float>(),
                         .offset = static_cast<float>(offset),
                         .dx = out<T>(op.dx),
                         .dgain = nullptr,
                         .dbias = nullptr,
                         .rows = op.x.rows(),
                         .n = row_length(Op::name, op.x)};
    const bool boundaries = on_16_bytes(rows.x, rows.dy, rows.gain, rows.dx.y);
    with_row_layout<T>(rows.n, boundaries, [&](auto layout) {
      using Layout = decltype(layout);
      const std::int64_t blocks = std::min(Layout::blocks(rows.rows), most_blocks);
      const PartialSums sums(backend, {op.dgain, dbias}, blocks, rows.n);
      rows.dgain = sums.parts(0);
      rows.dbias = sums.parts(1);
      launch(stream, blocks, block_threads, 0, norm_backward<Layout, centered, T>, rows);
      sums.combine(stream, 1);
    });
  });
}

}  // namespace

void run(CudaBackend& backend, const LayerNormBackward& op) {
  backward<true>(backend, backend.stream(), op, op.mean, 0, op.dbias);
}
void run(CudaBackend& backend, const RmsNormBackward& op) {
  backward<false>(backend, backend.stream(), op, {}, op.offset, {});
}

}  // namespace longhand::cuda
