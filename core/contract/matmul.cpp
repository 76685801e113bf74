#include "core/contract/matmul.h"

#include "core/contract/require.h"

namespace longhand {
MatmulExtents extents(const Matmul& op) {
  const Shape &a = op.a.shape(), &b = op.b.shape();
  const bool batched = b.rank() == 3;
  return {.batch = batched ? b[0] : 1,
          .m = op.transpose_a ? a[-1]
               : batched      ? a[-2]
                              : a.rows(),
          .n = op.transpose_b ? b[-2] : b[-1],
          .k = op.transpose_a ? a[-2] : a[-1]};
}

void check(const Matmul& op) {
  Arguments are(Matmul::name);
  const Shape &a = op.a.shape(), &b = op.b.shape();
  are.floats("a", op.a, 2);
  are.require(a.rank() <= 3, "a", "expected 2 or 3 axes, got ", a);
  are.require(a.rank() == 2 || !op.transpose_a || b.rank() == 3, "a",
              "expected 2 axes, because `a` is transposed and `b` is one matrix, got ", a);

  are.floats("b", op.b, 2);
  are.require(b.rank() == 2 || (b.rank() == 3 && a.rank() == 3), "b",
              "expected one matrix, or a batch of matrices if `a` is a batch, got ", b,
              " for `a` of shape ", a);
  const MatmulExtents sizes = extents(op);
  const std::int64_t m = sizes.m, n = sizes.n, k = sizes.k;
  const Shape b_matrix = op.transpose_b ? Shape{n, k} : Shape{k, n};
  const Shape b_batch = op.transpose_b ? Shape{a[0], n, k} : Shape{a[0], k, n};
  const Shape& b_expected = b.rank() == 2 ? b_matrix : b_batch;
  are.require(b == b_expected && master_type(op.a.dtype()) == master_type(op.b.dtype()), "b",
              "expected ", b_expected, " ", op.a.dtype(), ", got ", b, " ", op.b.dtype());

  const DType type = op.a.dtype();
  const Shape c = a.rank() == 2 ? Shape{m, n} : Shape{a[0], op.transpose_a ? a[2] : a[1], n};
  if (op.bias) are.in("bias", op.bias, Shape{n}, master_type(type));
  if (op.residual) are.in_mixed("residual", op.residual, c, type);
  if (op.at) {
    are.in_mixed("at", op.at, c, type);
    are.require(op.f.has_value(), "f",
                "expected an activation, because the operand `at` requires one, got none");
    are.require(!op.bias && !op.residual && !op.pre, "at",
                "expected no operand `at` together with `bias`, `residual` or `pre`");
  }
  if (op.pre) are.out_mixed("pre", op.pre, c, type);
  are.out_mixed("c", op.c, c, type);
}

}  // namespace longhand
