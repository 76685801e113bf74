#include "autograd/triangle.h"

#include "autograd/tape.h"
#include "core/contract/matmul.h"
#include "core/contract/triangle.h"

namespace longhand {

Var triangle(const Var& x, bool upper, std::int64_t diagonal, double alpha) {
  const Tensor y = empty_like(x.value());
  y.backend()(
      Triangle{.x = x.value(), .upper = upper, .diagonal = diagonal, .alpha = alpha, .y = y});
  return record("triangle", {&x}, y, [upper, diagonal, alpha, dx = x.sink()](const Tensor& dy) {
    dy.backend()(
        Triangle{.x = dy, .upper = upper, .diagonal = diagonal, .alpha = alpha, .y = dx.target()});
  });
}

Var solve_triangular(const Var& a, const Var& b, const SolveOptions& o) {
  const Tensor y = empty_like(b.value());
  y.backend()(SolveTriangular{.a = a.value(),
                              .b = b.value(),
                              .upper = o.upper,
                              .transpose = o.transpose,
                              .unit = o.unit,
                              .y = y});
  return record("solve_triangular", {&a, &b}, y, [a, db = b.sink(), o, y](const Tensor& dy) {
    Backend& run = dy.backend();
    // The gradient of `b` is the solution w of op(a)^T w = dy. Here op(a) is `a` or its transpose.
    const Tensor w = empty_like(dy);
    run(SolveTriangular{.a = a.value(),
                        .b = dy,
                        .upper = o.upper,
                        .transpose = !o.transpose,
                        .unit = o.unit,
                        .y = w});
    db.add(w);
    if (!a.wants_grad()) return;
    // Let op(a) be `a` or its transpose, and w the gradient of `b`. The gradient of op(a) is
    // -w y^T. It is added only in the triangle of `a` that the forward pass read. If `unit` is set,
    // the diagonal is not part of this triangle.
    const Tensor product = empty_like(a.value());
    run(Matmul{.a = o.transpose ? y : w,
               .b = o.transpose ? w : y,
               .transpose_b = true,
               .alpha = -1,
               .c = product,
               .math = Math::exact});
    const std::int64_t diagonal = o.unit ? (o.upper ? 1 : -1) : 0;
    run(Triangle{.x = product, .upper = o.upper, .diagonal = diagonal, .y = a.sink().target()});
  });
}

}  // namespace longhand
