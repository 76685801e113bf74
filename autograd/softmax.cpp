#include "autograd/softmax.h"

#include "autograd/tape.h"
#include "core/contract/softmax.h"

namespace longhand {

Var softmax(const Var& x, bool causal) {
  const Tensor y = empty_like(x.value());
  y.backend()(Softmax{.x = x.value(), .causal = causal, .y = y});
  return record("softmax", {&x}, y, [y, dx = x.sink()](const Tensor& dy) {
    dy.backend()(SoftmaxBackward{.y = y, .dy = dy, .dx = dx.target()});
  });
}

}  // namespace longhand
