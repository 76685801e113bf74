#include "autograd/elementwise.h"

#include "autograd/tape.h"
#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/reduce.h"

namespace longhand {
Var scale(const Var& x, double alpha) {
  Tensor y = empty_like(x.value());
  y.backend()(Scale{.x = x.value(), .alpha = alpha, .y = y});
  return record("scale", {&x}, y, [alpha, dx = x.sink()](const Tensor& dy) {
    dy.backend()(Scale{.x = dy, .alpha = alpha, .y = dx.target()});
  });
}

Var cast(const Var& x, DType dtype) {
  if (x.value().dtype() == dtype) return x;
  Tensor y(x.backend(), x.shape(), dtype);
  y.backend()(Copy{.x = x.value(), .y = y});
  return record("cast", {&x}, y, [dx = x.sink(), type = x.value().dtype()](const Tensor& dy) {
    Tensor converted(dy.backend(), dy.shape(), type);
    dy.backend()(Copy{.x = dy, .y = converted});
    dx.add(converted);
  });
}

Var activate(Activation f, const Var& x) {
  Tensor y = empty_like(x.value());
  y.backend()(Activate{.f = f, .x = x.value(), .y = y});
  return record("activate", {&x}, y, [f, x](const Tensor& dy) {
    dy.backend()(ActivateBackward{.f = f, .x = x.value(), .dy = dy, .dx = x.sink().target()});
  });
}

Var gate(Activation f, const Var& x) {
  Tensor y(x.backend(), x.shape().with_back(x.shape().back() / 2), x.value().dtype());
  y.backend()(Gate{.f = f, .x = x.value(), .y = y});
  return record("gate", {&x}, y, [f, x](const Tensor& dy) {
    dy.backend()(GateBackward{.f = f, .x = x.value(), .dy = dy, .dx = x.sink().target()});
  });
}

Var add_bias(const Var& x, const Var& bias, const Var& residual) {
  Tensor y = empty_like(x.value());
  y.backend()(AddBias{.x = x.value(), .bias = bias.value(), .residual = residual.value(), .y = y});
  return record("add_bias", {&x, &bias, &residual}, y,
                [dx = x.sink(), dbias = bias.sink(), dr = residual.sink()](const Tensor& dy) {
                  dx.add(dy);
                  dr.add(dy);
                  if (dbias) dy.backend()(ColumnSum{.x = dy, .y = dbias.target()});
                });
}

Var reshape(const Var& x, const Shape& shape) {
  return record("reshape", {&x}, x.value().reshape(shape),
                [dx = x.sink(), from = x.shape()](const Tensor& dy) { dx.add(dy.reshape(from)); });
}

Var slice(const Var& x, std::int64_t first, std::int64_t count) {
  return record("slice", {&x}, x.value().slice(first, count),
                [dx = x.sink(), first, count](const Tensor& dy) {
                  const Tensor part = dx.sum_in_place().slice(first, count);
                  dy.backend()(Combine{.f = Combination::sum, .a = part, .b = dy, .y = part});
                });
}

}  // namespace longhand
