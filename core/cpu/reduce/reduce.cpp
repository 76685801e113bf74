#include "core/contract/reduce.h"

#include <cmath>
#include <vector>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/reduce/kernels.h"
#include "core/cpu/reduce/partial_sums.h"

namespace longhand::cpu {
namespace {

/// Combines the results of the pieces of a long row, in order. Sums use f64, so that long rows do
/// not lose precision.
float combine(Reduction reduction, const float* pieces, std::int64_t count) {
  const bool extreme = reduction == Reduction::largest || reduction == Reduction::smallest;
  double result = extreme ? pieces[0] : 0.0;
  for (std::int64_t p = 0; p < count; ++p) {
    const double x = pieces[p];
    if (!extreme) {
      result += x;
    } else if (std::isnan(x) || (reduction == Reduction::largest ? x > result : x < result)) {
      result = x;
    }
  }
  return static_cast<float>(result);
}

}  // namespace

void run(CpuBackend& backend, const ColumnSum& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ReduceKernels<T>>(backend.isa());
    const std::int64_t rows = op.x.rows(), n = op.x.columns();
    const T* x = op.x.data<T>();
    PartialSums sums(op.y, partial_chunks(rows), n);
    const std::int64_t each = partial_rows(rows);
    const std::int64_t parts = partial_chunks(rows);
    constexpr std::int64_t block = 2048;
    const std::int64_t blocks = (n + block - 1) / block;
    parallel_for(backend.threads(), parts * blocks, 1, [&](std::int64_t job, std::int64_t) {
      const std::int64_t part = job / blocks, column = job % blocks * block;
      const std::int64_t first = part * each;
      k.add_rows(x + first * n + column, std::min(each, rows - first), n,
                 std::min(block, n - column), sums.part(part) + column);
    });
    sums.combine(backend.threads(), backend.isa(), op.alpha);
  });
}

void run(CpuBackend& backend, const Reduce& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ReduceKernels<T>>(backend.isa());
    const std::int64_t rows = op.x.rows(), n = op.x.columns();
    const T* x = op.x.data<T>();
    float* y = op.y.data<float>();
    if (n <= grain) {
      parallel_for(backend.threads(), rows, rows_per_chunk(n),
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i)
                       y[i] = k.reduce(op.reduction, x + i * n, n);
                   });
      return;
    }
    const std::int64_t pieces = (n + grain - 1) / grain;
    std::vector<float> results(static_cast<std::size_t>(rows * pieces));
    parallel_for(backend.threads(), rows * pieces, 1, [&](std::int64_t job, std::int64_t) {
      const std::int64_t i = job / pieces, first = job % pieces * grain;
      results[static_cast<std::size_t>(job)] =
          k.reduce(op.reduction, x + i * n + first, std::min(grain, n - first));
    });
    for (std::int64_t i = 0; i < rows; ++i) {
      y[i] = combine(op.reduction, results.data() + i * pieces, pieces);
    }
  });
}

}  // namespace longhand::cpu
