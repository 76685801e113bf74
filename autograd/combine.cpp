#include "autograd/combine.h"

#include "autograd/tape.h"
#include "core/contract/combine.h"
#include "core/contract/elementwise.h"

namespace longhand {
namespace {

Tensor combined(Combination f, const Tensor& a, const Tensor& b) {
  Tensor y(a.backend(), common_shape(Combine::name, a.shape(), b.shape()), a.dtype());
  y.backend()(Combine{.f = f, .a = a, .b = b, .y = y});
  return y;
}

/// Sums f(dy, v) over the axes along which x was broadcast, and adds the result to the gradient of
/// x. v is the value of the other operand.
void add_combined(const Var& x, Combination f, const Tensor& dy, const Tensor& v) {
  if (!x.wants_grad()) return;
  if (x.shape() == dy.shape()) {
    dy.backend()(Combine{.f = f, .a = dy, .b = v, .y = x.sink().target()});
  } else {
    x.sink().add_repeated(combined(f, dy, v));
  }
}

Tensor negative(const Tensor& x) {
  Tensor y = empty_like(x);
  y.backend()(Scale{.x = x, .alpha = -1, .y = y});
  return y;
}

/// Records y, whose entries are those of `a` where the mask is not 0 and those of `b` elsewhere. In
/// the backward pass, each entry of dy is added to the gradient of the operand that was chosen
/// there.
Var chosen(std::string_view op, const Var& a, const Var& b, const Tensor& y, const Tensor& mask) {
  return record(op, {&a, &b}, y, [da = a.sink(), db = b.sink(), mask](const Tensor& dy) {
    if (da) da.add_repeated(combined(Combination::kept, dy, mask));
    if (db) db.add_repeated(combined(Combination::dropped, dy, mask));
  });
}

}  // namespace

Var add(const Var& a, const Var& b) {
  return record("add", {&a, &b}, combined(Combination::sum, a.value(), b.value()),
                [da = a.sink(), db = b.sink()](const Tensor& dy) {
                  da.add_repeated(dy);
                  db.add_repeated(dy);
                });
}

Var subtract(const Var& a, const Var& b) {
  return record("subtract", {&a, &b}, combined(Combination::difference, a.value(), b.value()),
                [da = a.sink(), db = b.sink()](const Tensor& dy) {
                  da.add_repeated(dy);
                  if (db) db.add_repeated(negative(dy));
                });
}

Var multiply(const Var& a, const Var& b) {
  return record("multiply", {&a, &b}, combined(Combination::product, a.value(), b.value()),
                [a, b](const Tensor& dy) {
                  add_combined(a, Combination::product, dy, b.value());
                  add_combined(b, Combination::product, dy, a.value());
                });
}

Var divide(const Var& a, const Var& b) {
  const Tensor y = combined(Combination::quotient, a.value(), b.value());
  return record("divide", {&a, &b}, y, [da = a.sink(), b, y](const Tensor& dy) {
    // dy / b is added to the gradient of `a`.
    const Tensor share = combined(Combination::quotient, dy, b.value());
    da.add_repeated(share);
    if (b.wants_grad()) {
      b.sink().add_repeated(negative(combined(Combination::product, share, y)));
    }
  });
}

Var maximum(const Var& a, const Var& b) {
  const Tensor mask = combined(Combination::less_or_equal, b.value(), a.value());
  return chosen("maximum", a, b, combined(Combination::largest, a.value(), b.value()), mask);
}

Var minimum(const Var& a, const Var& b) {
  const Tensor mask = combined(Combination::less_or_equal, a.value(), b.value());
  return chosen("minimum", a, b, combined(Combination::smallest, a.value(), b.value()), mask);
}

Var less(const Var& a, const Var& b) { return combined(Combination::less, a.value(), b.value()); }

Var less_or_equal(const Var& a, const Var& b) {
  return combined(Combination::less_or_equal, a.value(), b.value());
}

Var equal(const Var& a, const Var& b) { return combined(Combination::equal, a.value(), b.value()); }

Var where(const Var& mask, const Var& a, const Var& b) {
  const Tensor from_a = combined(Combination::kept, a.value(), mask.value());
  const Tensor from_b = combined(Combination::dropped, b.value(), mask.value());
  return chosen("where", a, b, combined(Combination::sum, from_a, from_b), mask.value());
}

}  // namespace longhand
