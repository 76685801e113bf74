#include "core/contract/steps.h"

#include <algorithm>

#include "core/error.h"

namespace longhand {

Steps row_major(const Shape& shape) {
  Steps steps;
  std::int64_t step = 1;
  for (int a = shape.rank() - 1; a >= 0; --a) {
    steps.along[a] = step;
    step *= shape[a];
  }
  return steps;
}

Steps repeated(const Shape& x, const Shape& y) {
  const Steps own = row_major(x);
  Steps steps;
  const int more = y.rank() - x.rank();
  for (int a = 0; a < x.rank(); ++a) {
    if (x[a] != 1) steps.along[a + more] = own.along[a];
  }
  return steps;
}

bool repeats_to(const Shape& x, const Shape& y) {
  if (x.rank() > y.rank()) return false;
  for (int a = 1; a <= x.rank(); ++a) {
    if (x[-a] != y[-a] && x[-a] != 1) return false;
  }
  return true;
}

Shape common_shape(std::string_view op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Index extents{};
  for (int axis = 1; axis <= rank; ++axis) {
    const std::int64_t of_a = axis <= a.rank() ? a[-axis] : 1;
    const std::int64_t of_b = axis <= b.rank() ? b[-axis] : 1;
    LONGHAND_CHECK(of_a == of_b || of_a == 1 || of_b == 1, op,
                   ": b: expected a shape that broadcasts with ", a, ", got ", b);
    extents[rank - axis] = of_a == 1 ? of_b : of_a;
  }
  return Shape(std::span<const std::int64_t>(extents.data(), static_cast<std::size_t>(rank)));
}

}  // namespace longhand
