#include "core/contract/softmax.h"

#include <cmath>
#include <limits>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Softmax& op) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Rows x(op.x);
  const Result y(op.y);
  const std::int64_t n = op.x.columns();
  const std::int64_t t = op.causal ? op.x.shape()[-2] : 0;

  for (std::int64_t row = 0; row < op.x.rows(); ++row) {
    const std::int64_t last = op.causal ? row % t + (n - t) : n - 1;  // the last visible column

    double max = -infinity;
    for (std::int64_t j = 0; j <= last; ++j) {
      // A NaN in x becomes the maximum, so that every visible entry of y is NaN.
      if (x(row, j) > max || std::isnan(x(row, j))) max = x(row, j);
    }
    double sum = 0;
    for (std::int64_t j = 0; j <= last; ++j) sum += std::exp(x(row, j) - max);

    for (std::int64_t j = 0; j < n; ++j) {
      const bool nothing = j > last || max == -infinity;
      y.put(row, j, nothing ? 0 : std::exp(x(row, j) - max) / sum);
    }
  }
}

void run(ReferenceBackend&, const SoftmaxBackward& op) {
  const Rows y(op.y), dy(op.dy);
  const Result dx(op.dx);
  for (std::int64_t i = 0; i < op.y.rows(); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < op.y.columns(); ++k) sum += dy(i, k) * y(i, k);
    for (std::int64_t j = 0; j < op.y.columns(); ++j) dx.put(i, j, y(i, j) * (dy(i, j) - sum));
  }
}

}  // namespace longhand::reference
