#include "core/contract/reduce.h"

#include <cmath>
#include <limits>

#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double start(Reduction reduction) {
  switch (reduction) {
    case Reduction::largest:
      return -infinity;
    case Reduction::smallest:
      return infinity;
    default:
      return 0;
  }
}

/// Combines `sofar`, the reduction of the entries so far, with the next entry x.
double reduce(Reduction reduction, double sofar, double x) {
  switch (reduction) {
    case Reduction::sum:
      return sofar + x;
    case Reduction::largest:
      // If `sofar` is NaN, it is kept, because x > NaN is false.
      return x > sofar || std::isnan(x) ? x : sofar;
    case Reduction::smallest:
      return x < sofar || std::isnan(x) ? x : sofar;
    case Reduction::square_sum:
      return sofar + x * x;
    default:
      return sofar + (std::isfinite(x) ? 0 : 1);
  }
}

}  // namespace

void run(ReferenceBackend&, const ColumnSum& op) {
  const Rows x(op.x);
  const Result y(op.y);
  for (std::int64_t j = 0; j < op.x.columns(); ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < op.x.rows(); ++i) sum += x(i, j);
    y.put(j, op.alpha * sum);
  }
}

void run(ReferenceBackend&, const Reduce& op) {
  const Rows x(op.x);
  const Result y(op.y);
  for (std::int64_t i = 0; i < op.x.rows(); ++i) {
    double value = start(op.reduction);
    for (std::int64_t j = 0; j < op.x.columns(); ++j) value = reduce(op.reduction, value, x(i, j));
    y.put(i, value);
  }
}

}  // namespace longhand::reference
