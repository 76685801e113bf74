#include "core/contract/elementwise.h"

#include <cmath>
#include <limits>

#include "core/contract/require.h"

namespace longhand {
namespace {

/// True if an element of `type` can hold the value.
bool holds(DType type, double value) {
  if (is_float(type)) return true;
  const double largest = type == DType::u8 ? std::numeric_limits<std::uint8_t>::max()
                                           : std::numeric_limits<std::int32_t>::max();
  const double smallest = type == DType::u8 ? 0 : std::numeric_limits<std::int32_t>::min();
  return value >= smallest && value <= largest && value == std::floor(value);
}

/// Returns the shape of Gate's output y. Its rows are half as long as the rows of x.
Shape half(Arguments& are, const Tensor& x) {
  are.require(x.columns() % 2 == 0, "x", "expected an even number of columns, got ", x.shape());
  return x.shape().with_back(x.columns() / 2);
}

}  // namespace

void check(const Fill& op) {
  Arguments are(Fill::name);
  are.any("y", op.y);
  are.require(holds(op.y.dtype(), op.value), "value", "expected a value of type ", op.y.dtype(),
              ", got ", op.value);
}

void check(const Copy& op) {
  Arguments are(Copy::name);
  are.any("x", op.x);
  are.require(static_cast<bool>(op.y), "y", "expected a tensor, got none");
  are.require(is_float(op.y.dtype()) || op.y.dtype() == op.x.dtype(), "y", "expected ",
              op.x.dtype(), " or a float type, got ", op.y.dtype());
  if (op.y.dtype() == op.x.dtype()) {
    are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
  } else {
    are.out("y", op.y, op.x.shape(), op.y.dtype());
  }
}

void check(const Scale& op) {
  Arguments are(Scale::name);
  are.floats("x", op.x);
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

void check(const Activate& op) {
  Arguments are(Activate::name);
  are.floats("x", op.x);
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x"});
}

void check(const ActivateBackward& op) {
  Arguments are(ActivateBackward::name);
  are.floats("x", op.x);
  are.in("dy", op.dy, op.x.shape(), op.x.dtype());
  are.out("dx", op.dx, op.x.shape(), op.x.dtype(), {"x", "dy"});
}

void check(const Gate& op) {
  Arguments are(Gate::name);
  are.floats("x", op.x, 1);
  are.out("y", op.y, half(are, op.x), op.x.dtype());
}

void check(const GateBackward& op) {
  Arguments are(GateBackward::name);
  are.floats("x", op.x, 1);
  are.in("dy", op.dy, half(are, op.x), op.x.dtype());
  are.out("dx", op.dx, op.x.shape(), op.x.dtype(), {"x"});
}

void check(const AddBias& op) {
  Arguments are(AddBias::name);
  const Shape columns{op.x.columns()};
  are.floats("x", op.x, 1);
  if (op.bias) are.in("bias", op.bias, columns, master_type(op.x.dtype()));
  if (op.residual) are.in("residual", op.residual, op.x.shape(), op.x.dtype());
  are.out("y", op.y, op.x.shape(), op.x.dtype(), {"x", "residual"});
}

}  // namespace longhand
