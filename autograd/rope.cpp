#include "autograd/rope.h"

#include "autograd/tape.h"
#include "core/contract/rope.h"

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
  // The gradient of x is dy rotated back. It does not depend on x or y, so neither is kept.
  op.x = {};
  op.y = {};
  op.inverse = true;
  return record("rope", {&x}, y, [op, dx = x.sink()](const Tensor& dy) mutable {
    const bool in_place = dy.sole();  // true if dx can overwrite dy
    op.x = dy;
    op.y = in_place ? Target(dy) : dx.target();
    dy.backend()(op);
    op.x = {};
    op.y = {};
    if (in_place) dx.add(dy);
  });
}

Var rotated(const Var& x, const Tensor& y, const Var& angles, const RotateLayout& layout) {
  Rotate op{.x = x.value(),
            .angles = angles.value(),
            .first_column = layout.first_column,
            .heads = layout.heads,
            .width = layout.width,
            .y = y};
  y.backend()(op);
  op.x = op.y = {};
  op.inverse = true;
  return record("rotate", {&x, &angles}, y,
                [op, y, dx = x.sink(), dangles = angles.sink()](const Tensor& dy) mutable {
                  if (dangles) {
                    dy.backend()(RotateBackward{.y = y,
                                                .dy = dy,
                                                .first_column = op.first_column,
                                                .heads = op.heads,
                                                .width = op.width,
                                                .dangles = dangles.target()});
                  }
                  if (!dx) return;
                  op.x = dy;
                  op.y = dy.sole() ? dy : empty_like(dy);
                  dy.backend()(op);
                  dx.add(op.y);
                  op.x = op.y = {};
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

Var rotate(const Var& x, const Var& angles, const RotateLayout& layout) {
  return rotated(x, empty_like(x.value()), angles, layout);
}

Var rotate_in_place(const Var& x, const Var& angles, const RotateLayout& layout) {
  return rotated(x, x.value(), angles, layout);
}

}  // namespace longhand
