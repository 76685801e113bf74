#include "core/contract/triangle.h"

#include <vector>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/triangle/kernels.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Triangle& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<TriangleKernels<T>>(backend.isa());
    const std::int64_t n = op.x.columns();
    const T* x = op.x.data<T>();
    T* y = op.y.tensor.data<T>();
    parallel_for(backend.threads(), op.x.rows(), rows_per_chunk(n),
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; ++row) {
                     const std::int64_t i = row % n;
                     const std::int64_t from =
                         op.upper ? std::clamp<std::int64_t>(i + op.diagonal, 0, n) : 0;
                     const std::int64_t to =
                         op.upper ? n : std::clamp<std::int64_t>(i + op.diagonal + 1, 0, n);
                     k.row(x + row * n, static_cast<float>(op.alpha), y + row * n,
                           {.add = op.y.add}, from, to, n);
                   }
                 });
  });
}

void run(CpuBackend& backend, const SolveTriangular& op) {
  visit_activation(op.a.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<TriangleKernels<T>>(backend.isa());
    const std::int64_t n = op.a.columns(), m = op.b.columns();
    if (n == 0 || m == 0) return;
    const std::int64_t batch = op.a.rows() / n, panels = (m + panel - 1) / panel;
    const T *a = op.a.data<T>(), *b = op.b.data<T>();
    T* y = op.y.data<T>();
    const std::int64_t each = n * panel;
    std::vector<float> scratch(static_cast<std::size_t>(backend.threads().threads() * each));
    backend.threads().run(batch * panels, [&](std::int64_t job, int worker) {
      const std::int64_t matrix = job / panels, column = job % panels * panel;
      const std::int64_t at = matrix * n * m + column;
      k.solve({.a = a + matrix * n * n,
               .row_step = op.transpose ? 1 : n,
               .column_step = op.transpose ? n : 1,
               .n = n,
               .forward = op.upper == op.transpose,
               .unit = op.unit,
               .b = b + at,
               .y = y + at,
               .m = m,
               .columns = std::min(panel, m - column),
               .scratch = scratch.data() + worker * each});
    });
  });
}

}  // namespace longhand::cpu
