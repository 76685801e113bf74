#include "core/contract/triangle.h"

#include "core/contract/require.h"

namespace longhand {
namespace {

void require_square(Arguments& are, std::string_view argument, const Tensor& x) {
  are.floats(argument, x, 2);
  are.require(x.shape()[-1] == x.shape()[-2], argument, "expected square matrices, got ",
              x.shape());
}

}  // namespace

void check(const Triangle& op) {
  Arguments are(Triangle::name);
  require_square(are, "x", op.x);
  constexpr std::int64_t most = std::int64_t{1} << 40;
  are.require(op.diagonal >= -most && op.diagonal <= most, "diagonal",
              "expected -2^40 to 2^40, got ", op.diagonal);
  are.out("y", op.y, op.x.shape(), op.x.dtype());
}

void check(const SolveTriangular& op) {
  Arguments are(SolveTriangular::name);
  require_square(are, "a", op.a);
  const Shape right_hand_sides = op.a.shape().with_back(op.b.columns());
  are.in("b", op.b, right_hand_sides, op.a.dtype());
  are.out("y", op.y, right_hand_sides, op.a.dtype(), {"b"});
}

}  // namespace longhand
