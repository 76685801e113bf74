#include "autograd/low_rank.h"

#include "autograd/elementwise.h"
#include "autograd/matmul.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/tape.h"
#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "core/contract/rearrange.h"
#include "core/error.h"

namespace longhand {
namespace {

/// The memory layout (Steps of core/contract/steps.h) of the columns of y from `first` on.
Steps steps_in(const Tensor& y, std::int64_t first) {
  Steps steps = row_major(y.shape());
  steps.first = first;
  return steps;
}

void check(const Var& y, const Var& x, const Var& a, const Var& b, const LowRankOptions& o) {
  const auto matrix = [](const char* name, const Var& v) {
    LONGHAND_CHECK(v.shape().rank() == 2, "low_rank: ", name, ": expected a matrix, got ",
                   v.shape());
  };
  matrix("y", y);
  matrix("x", x);
  matrix("a", a);
  matrix("b", b);
  const auto same = [](const char* name, const Var& v, std::int64_t rows, std::int64_t columns) {
    LONGHAND_CHECK((v.shape() == Shape{rows, columns}), "low_rank: ", name, ": expected ",
                   Shape{rows, columns}, ", got ", v.shape());
  };
  same("a", a, a.shape()[0], x.shape()[1]);
  same("b", b, b.shape()[0], a.shape()[0]);
  same("y", y, x.shape()[0], y.shape()[1]);
  LONGHAND_CHECK(o.first_column >= 0 && o.first_column + b.shape()[0] <= y.shape()[1],
                 "low_rank: expected first_column + ", b.shape()[0], " to be at most ",
                 y.shape()[1], ", the number of columns of y, got first_column ", o.first_column);
}

/// Returns y + scale x a^T b^T. The product is added to `into`, which is either y itself or a copy
/// of it.
Var added(const Var& y, const Tensor& into, const Var& x, const Var& a, const Var& b,
          const LowRankOptions& o) {
  Backend& backend = y.backend();
  const std::int64_t rows = x.shape()[0];
  const Tensor h(backend, {rows, a.shape()[0]}, x.value().dtype());  // the product x a^T
  backend(Matmul{.a = x.value(), .b = a.value(), .transpose_b = true, .c = h});
  {
    const Tensor product(backend, {rows, b.shape()[0]}, into.dtype());
    backend(Matmul{.a = h, .b = b.value(), .transpose_b = true, .alpha = o.scale, .c = product});
    backend(Rearrange{.shape = product.shape(),
                      .x = product,
                      .from = row_major(product.shape()),
                      .y = Target(into, true),
                      .to = steps_in(into, o.first_column)});
  }
  return record("low_rank", {&y, &x, &a, &b}, into,
                [y = y.sink(), x, a, b, h, o](const Tensor& dy) {
                  Backend& run = dy.backend();
                  y.add(dy);
                  if (!x.wants_grad() && !a.wants_grad() && !b.wants_grad()) return;
                  const std::int64_t out = b.shape()[0];
                  const bool whole = out == dy.columns();
                  // dz is the gradient of the columns of y to which the product was added.
                  const Tensor dz = whole ? dy : Tensor(run, {dy.rows(), out}, dy.dtype());
                  if (!whole) {
                    run(Rearrange{.shape = dz.shape(),
                                  .x = dy,
                                  .from = steps_in(dy, o.first_column),
                                  .y = dz,
                                  .to = row_major(dz.shape())});
                  }
                  const auto product = [&](const Tensor& left, bool transposed, const Tensor& right,
                                           double alpha, const Target& to) {
                    run(Matmul{.a = left,
                               .b = right,
                               .transpose_a = transposed,
                               .alpha = alpha,
                               .c = to.tensor,
                               .beta = to.add ? 1.0 : 0.0});
                  };
                  if (b.wants_grad()) product(dz, true, h, o.scale, b.sink().target());
                  if (!a.wants_grad() && !x.wants_grad()) return;
                  const Tensor dh = empty_like(h);
                  product(dz, false, b.value(), o.scale, dh);
                  if (a.wants_grad()) product(dh, true, x.value(), 1, a.sink().target());
                  if (x.wants_grad()) product(dh, false, a.value(), 1, x.sink().target());
                });
}

}  // namespace

Var low_rank(const Var& y, const Var& x, const Var& a, const Var& b, const LowRankOptions& o) {
  check(y, x, a, b, o);
  const Tensor copy = empty_like(y.value());
  y.backend()(Copy{.x = y.value(), .y = copy});
  return added(y, copy, x, a, b, o);
}

Var low_rank_in_place(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& o) {
  check(y, x, a, b, o);
  return added(y, y.value(), x, a, b, o);
}

Var low_rank_composed(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& o) {
  check(y, x, a, b, o);
  const std::int64_t out = b.shape()[0], after = o.first_column + out;
  const Var product =
      scale(matmul(matmul(x, a, {.transpose_b = true}), b, {.transpose_b = true}), o.scale);
  return concat({columns(y, 0, o.first_column), columns(y, o.first_column, out) + product,
                 columns(y, after, y.shape()[1] - after)},
                1);
}

}  // namespace longhand
