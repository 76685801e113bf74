#include "autograd/rope.h"

#include "autograd/tape.h"

namespace longhand {

namespace {

Var turned(const Var& x, const Tensor& y, const Tensor& positions, const Tensor& table,
           const RopeLayout& layout) {
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
    const bool in_place = dy.sole();  // then dx may be dy's memory
    op.x = dy;
    op.y = in_place ? Target(dy) : dx.target();
    dy.backend()(op);
    op.x = {};
    op.y = {};
    if (in_place) dx.add(dy);
  });
}

}  // namespace

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout) {
  return turned(x, empty_like(x.value()), positions, table, layout);
}

Var rope_in_place(const Var& x, const Tensor& positions, const Tensor& table,
                  const RopeLayout& layout) {
  return turned(x, x.value(), positions, table, layout);
}

}  // namespace longhand
