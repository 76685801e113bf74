#include "core/contract/matmul.h"

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Matmul& op) {
  const auto [batch, m, n, k] = extents(op);
  const Rows a(op.a), b(op.b), bias(op.bias), residual(op.residual), at(op.at), old_c(op.c);
  const Result pre(op.pre), c(op.c);

  const auto f = [&](double x) {
    return with_formula(*op.f, [&](auto formula) { return formula.value(x); });
  };
  const auto df = [&](double x) {
    return with_formula(*op.f, [&](auto formula) { return formula.derivative(x); });
  };

  for (std::int64_t matrix = 0; matrix < batch; ++matrix) {
    // row_a and row_b are the rows of a and b at which the two factors of this product begin.
    const std::int64_t row_a = matrix * (op.transpose_a ? k : m);
    const std::int64_t row_b = matrix * (op.transpose_b ? n : k);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t p = 0; p < k; ++p) {
          sum += (op.transpose_a ? a(row_a + p, i) : a(row_a + i, p)) *
                 (op.transpose_b ? b(row_b + j, p) : b(row_b + p, j));
        }
        const std::int64_t row = matrix * m + i;
        const double product = op.alpha * sum;
        double value;
        if (op.at) {
          value = product * df(at(row, j));
        } else {
          const double z = product + (op.bias ? bias(j) : 0);
          pre.put(row, j, z);
          value = (op.f ? f(z) : z) + (op.residual ? residual(row, j) : 0);
        }
        if (op.beta != 0) value += op.beta * old_c(row, j);
        c.put(row, j, value);
      }
    }
  }
}

}  // namespace longhand::reference
