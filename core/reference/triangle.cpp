#include "core/contract/triangle.h"

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Triangle& op) {
  const Rows x(op.x);
  const Result y(op.y);
  const std::int64_t n = op.x.columns();
  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    const std::int64_t i = row % n;
    for (std::int64_t j = 0; j < n; ++j) {
      const bool kept = op.upper ? j >= i + op.diagonal : j <= i + op.diagonal;
      y.put(row, j, kept ? op.alpha * x(row, j) : 0);
    }
  }
}

void run(ReferenceBackend&, const SolveTriangular& op) {
  const std::int64_t n = op.a.columns(), m = op.b.columns();
  const std::int64_t batch = n == 0 ? 0 : op.a.rows() / n;
  const Rows a(op.a), b(op.b), y(op.y);
  const Result out(op.y);
  // True if the matrix of the equations, which is a or the transpose of a, is lower triangular.
  // The rows of y are then computed from the first to the last.
  const bool forward = op.upper == op.transpose;

  for (std::int64_t matrix = 0; matrix < batch; ++matrix) {
    const std::int64_t first = matrix * n;
    const auto op_a = [&](std::int64_t i, std::int64_t j) {
      return op.transpose ? a(first + j, i) : a(first + i, j);
    };
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t i = forward ? step : n - 1 - step;
      const std::int64_t solved_from = forward ? 0 : i + 1, solved_to = forward ? i : n;
      for (std::int64_t c = 0; c < m; ++c) {
        double rest = b(first + i, c);
        for (std::int64_t j = solved_from; j < solved_to; ++j) rest -= op_a(i, j) * y(first + j, c);
        out.put(first + i, c, op.unit ? rest : rest / op_a(i, i));
      }
    }
  }
}

}  // namespace longhand::reference
