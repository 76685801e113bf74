#include "core/contract/softmax.h"

#include "core/contract/require.h"

namespace longhand {

void check(const Softmax& op) {
  Arguments are(Softmax::name);
  are.floats("x", op.x, op.causal ? 2 : 1);
  are.out("y", op.y, op.x.shape(), op.x.dtype());
}

void check(const SoftmaxBackward& op) {
  Arguments are(SoftmaxBackward::name);
  are.floats("y", op.y, 1);
  are.in("dy", op.dy, op.y.shape(), op.y.dtype());
  are.out("dx", op.dx, op.y.shape(), op.y.dtype());
}

}  // namespace longhand
