#include "autograd/matmul.h"

#include "autograd/tape.h"
#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "core/contract/reduce.h"

namespace longhand {
namespace {

/// True if `a` is [batch, m, k] and b is a single matrix. Then `a` and the result are read as
/// matrices with batch * m rows.
bool is_flat(const Var& a, const Var& b) { return a.shape().rank() == 3 && b.shape().rank() == 2; }

/// Adds to the gradients of all inputs of a matmul(). dc is the gradient of its output, and `pre`
/// is the argument of its activation.
void matmul_backward(const Var& a, const Var& b, const MatmulOptions& o, const Tensor& pre,
                     const Tensor& dc) {
  Backend& run = dc.backend();
  o.residual.sink().add(dc);
  Tensor dz = dc;
  if (o.f && pre) {
    dz = empty_like(dc);
    run(ActivateBackward{.f = *o.f, .x = pre, .dy = dc, .dx = dz});
  }
  if (o.bias.wants_grad()) run(ColumnSum{.x = dz, .y = o.bias.sink().target()});

  const auto rows = [&](const Tensor& x) {
    return is_flat(a, b) ? x.reshape({x.rows(), x.columns()}) : x;
  };
  const Tensor left = rows(a.value());
  const Tensor right = b.value();
  dz = rows(dz);
  const auto product = [&](const Tensor& x, bool tx, const Tensor& y, bool ty, Target into) {
    run(Matmul{.a = x,
               .b = y,
               .transpose_a = tx,
               .transpose_b = ty,
               .alpha = o.alpha,
               .c = rows(into.tensor),
               .beta = into.add ? 1.0 : 0.0,
               .math = o.math});
  };
  // dz is the gradient of the activation's argument. op(a) is `a` or, if transpose_a is set, its
  // transpose, and op(b) likewise. The gradient of `a` is
  //   da = alpha dz op(b)^T if op(a) = a;  da = alpha op(b) dz^T if op(a) = a^T.
  if (a.wants_grad()) {
    const Target da = a.sink().target();
    if (o.transpose_a) {
      product(right, o.transpose_b, dz, true, da);
    } else {
      product(dz, false, right, !o.transpose_b, da);
    }
  }
  // dz is the gradient of the activation's argument. op(b) is `b` or, if transpose_b is set, its
  // transpose, and op(a) likewise. The gradient of `b` is
  //   db = alpha op(a)^T dz if op(b) = b;  db = alpha dz^T op(a) if op(b) = b^T.
  if (b.wants_grad()) {
    const Target db = b.sink().target();
    if (o.transpose_b) {
      product(dz, true, left, o.transpose_a, db);
    } else {
      product(left, !o.transpose_a, dz, false, db);
    }
  }
}

}  // namespace

Var matmul(const Var& a, const Var& b, const MatmulOptions& o) {
  Backend& backend = a.backend();
  Matmul op{.a = a.value(),
            .b = b.value(),
            .transpose_a = o.transpose_a,
            .transpose_b = o.transpose_b,
            .alpha = o.alpha,
            .bias = o.bias.value(),
            .f = o.f,
            .residual = o.residual.value(),
            .c = {},
            .math = o.math};
  const auto [batch, m, n, k] = extents(op);
  const Shape shape = is_flat(a, b)           ? Shape{a.shape()[0], a.shape()[1], n}
                      : a.shape().rank() == 3 ? Shape{batch, m, n}
                                              : Shape{m, n};
  op.c = Tensor(backend, shape, o.out.value_or(a.value().dtype()));
  const bool recorded =
      Tape::current() && (a.wants_grad() || b.wants_grad() || o.bias.wants_grad());
  if (o.f && recorded) op.pre = empty_like(op.c);
  backend(op);

  return record("matmul", {&a, &b, &o.bias, &o.residual}, op.c,
                [a, b, o, pre = op.pre](const Tensor& dc) { matmul_backward(a, b, o, pre, dc); });
}

}  // namespace longhand
