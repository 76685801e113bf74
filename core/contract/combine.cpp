#include "core/contract/combine.h"

#include "core/contract/require.h"

namespace longhand {

void check(const Combine& op) {
  Arguments are(Combine::name);
  are.floats("a", op.a);
  are.in("b", op.b, op.b.shape(), op.a.dtype());
  const Shape shape = common_shape(Combine::name, op.a.shape(), op.b.shape());
  are.out("y", op.y, shape, op.a.dtype(), {"a", "b"});
}

}  // namespace longhand
