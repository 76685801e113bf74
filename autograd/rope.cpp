#include "autograd/rope.h"

#include "autograd/tape.h"

namespace longhand {

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout) {
  const Tensor y = empty_like(x.value());
  Rope op{.x = x.value(),
          .positions = positions,
          .table = table,
          .first_column = layout.first_column,
          .heads = layout.heads,
          .width = layout.width,
          .dims = layout.dims,
          .interleaved = layout.interleaved,
          .y = y};
  y.backend()(op);
  op.x = {};  // a rotation's backward pass is the rotation back; x is not needed
  op.y = {};
  op.inverse = true;
  return record("rope", {&x}, y, [op, dx = x.sink()](const Tensor& dy) mutable {
    op.x = dy;
    op.y = dx.target();
    dy.backend()(op);
    op.x = {};
    op.y = {};
  });
}

}  // namespace longhand
