#include "core/contract/reduce.h"

#include <array>

#include "core/contract/require.h"

namespace longhand {

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 5> names{"sum", "largest", "smallest", "square_sum",
                                                  "nonfinite"};
  return names[static_cast<std::size_t>(reduction)];
}

void check(const ColumnSum& op) {
  Arguments are(ColumnSum::name);
  are.floats("x", op.x, 1);
  are.out("y", op.y, Shape{op.x.columns()}, master_type(op.x.dtype()));
}

void check(const Reduce& op) {
  Arguments are(Reduce::name);
  are.floats("x", op.x, 1);
  are.out("y", op.y, Shape{op.x.rows()}, master_type(op.x.dtype()));
}

void check(const Expand& op) {
  Arguments are(Expand::name);
  are.floats("x", op.x, 1);
  if (!op.y) return;
  const Tensor& y = op.y.tensor;
  are.require(is_float(y.dtype()), "y", "expected a float type, got ", y.dtype());
  are.require(op.x.shape() == Shape{y.rows()} && op.x.dtype() == master_type(y.dtype()), "x",
              "expected ", Shape{y.rows()}, " ", master_type(y.dtype()), ", got ", op.x.shape(),
              " ", op.x.dtype());
  are.out("y", op.y, y.shape(), y.dtype());
}

}  // namespace longhand
