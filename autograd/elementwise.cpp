#include "autograd/elementwise.h"

#include "autograd/tape.h"

namespace longhand {
namespace {

/// sink += factor dy
void add_scaled(const Sink& sink, double factor, const Tensor& dy) {
  if (!sink) return;
  if (factor == 1) {
    sink.add(dy);
  } else {
    dy.backend()(Scale{.x = dy, .alpha = factor, .y = sink.target()});
  }
}

}  // namespace

Var add(const Var& a, const Var& b, double alpha, double beta) {
  Tensor y = empty_like(a.value());
  y.backend()(Add{.a = a.value(), .b = b.value(), .alpha = alpha, .beta = beta, .y = y});
  return record("add", {&a, &b}, y, [alpha, beta, da = a.sink(), db = b.sink()](const Tensor& dy) {
    add_scaled(da, alpha, dy);
    add_scaled(db, beta, dy);
  });
}

Var scale(const Var& x, double alpha) {
  Tensor y = empty_like(x.value());
  y.backend()(Scale{.x = x.value(), .alpha = alpha, .y = y});
  return record("scale", {&x}, y,
                [alpha, dx = x.sink()](const Tensor& dy) { add_scaled(dx, alpha, dy); });
}

Var multiply(const Var& a, const Var& b) {
  Tensor y = empty_like(a.value());
  y.backend()(Multiply{.a = a.value(), .b = b.value(), .y = y});
  return record("multiply", {&a, &b}, y, [a, b](const Tensor& dy) {
    if (a.wants_grad()) dy.backend()(Multiply{.a = dy, .b = b.value(), .y = a.sink().target()});
    if (b.wants_grad()) dy.backend()(Multiply{.a = dy, .b = a.value(), .y = b.sink().target()});
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
                  dy.backend()(Add{.a = part, .b = dy, .y = part});
                });
}

}  // namespace longhand
