#include "autograd/dropout.h"

#include "autograd/tape.h"
#include "core/contract/dropout.h"

namespace longhand {
namespace {

Dropout of(const DropoutDraw& draw, const Tensor& x, Target y) {
  return {.x = x,
          .rate = draw.rate,
          .seed = draw.seed,
          .index = draw.index,
          .step = draw.step,
          .y = std::move(y)};
}

}  // namespace

Var dropout(const Var& x, const DropoutDraw& draw) {
  Tensor y = empty_like(x.value());
  y.backend()(of(draw, x.value(), y));
  // The backward pass draws the same random numbers again, so the tensor `step` must keep its value
  // until then.
  return record("dropout", {&x}, y, [draw, dx = x.sink()](const Tensor& dy) {
    dy.backend()(of(draw, dy, dx.target()));
  });
}

}  // namespace longhand
