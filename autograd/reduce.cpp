#include "autograd/reduce.h"

#include <vector>

#include "autograd/elementwise.h"
#include "autograd/rearrange.h"
#include "autograd/tape.h"
#include "core/contract/elementwise.h"
#include "core/contract/gather.h"
#include "core/contract/rearrange.h"
#include "core/contract/reduce.h"
#include "core/error.h"

namespace longhand {
namespace {

Shape matrix(const Shape& shape) { return {shape.rows(), shape.columns()}; }

/// Adds dy to the gradient dx, which has the given shape [rows, n]. dy is read with the shape
/// `of_dy`, [rows, 1] or [1, n], and is broadcast.
void add_to_all(const Sink& dx, const Shape& shape, const Tensor& dy, const Shape& of_dy) {
  if (!dx) return;
  dy.backend()(Rearrange{.shape = shape,
                         .x = dy,
                         .from = repeated(of_dy, shape),
                         .y = dx.target(),
                         .to = row_major(shape)});
}

/// Reduces x along any axis: moves this axis to the end and applies the row reduction `of`.
Var along(const Var& x, int axis, Var (*of)(const Var& x)) {
  const int rank = x.shape().rank();
  LONGHAND_CHECK(axis >= -rank && axis < rank,
                 "reduction: expected the index of an axis of the shape ", x.shape(), ", got ",
                 axis);
  std::vector<int> axes;
  std::vector<std::int64_t> left;
  for (int a = 0; a < rank; ++a) {
    if (a == axis || a == axis + rank) continue;
    axes.push_back(a);
    left.push_back(x.shape()[a]);
  }
  axes.push_back(axis);
  const bool last = axis == -1 || axis == rank - 1;
  const Var moved = last ? x : permute(x, axes);
  return reshape(of(reshape(moved, matrix(moved.shape()))),
                 Shape(std::span<const std::int64_t>(left)));
}

}  // namespace

Var column_sum(const Var& x) {
  const Tensor y(x.backend(), {x.value().columns()}, master_type(x.value().dtype()));
  y.backend()(ColumnSum{.x = x.value(), .y = y});
  return record("column_sum", {&x}, y,
                [dx = x.sink(), shape = matrix(x.shape())](const Tensor& dy) {
                  add_to_all(dx, shape, dy, {1, shape[1]});  // dx_ij = dy_j
                });
}

Var row_sum(const Var& x) {
  const Tensor y(x.backend(), {x.value().rows()}, master_type(x.value().dtype()));
  y.backend()(Reduce{.reduction = Reduction::sum, .x = x.value(), .y = y});
  return record("row_sum", {&x}, y, [dx = x.sink(), shape = matrix(x.shape())](const Tensor& dy) {
    add_to_all(dx, shape, dy, {shape[0], 1});  // dx_ij = dy_i
  });
}

Var sum(const Var& x) { return row_sum(reshape(x, {1, x.value().size()})); }

Var mean(const Var& x) {
  const auto n = static_cast<double>(x.value().size());
  return scale(sum(x), n > 0 ? 1 / n : 0);
}

Var row_max(const Var& x) {
  const std::int64_t rows = x.value().rows();
  const Tensor y(x.backend(), {rows}, master_type(x.value().dtype()));
  const Tensor where(x.backend(), {rows}, DType::i32);
  y.backend()(Reduce{.reduction = Reduction::largest, .x = x.value(), .y = y});
  y.backend()(Argmax{.x = x.value(), .y = where});
  return record(
      "row_max", {&x}, y, [dx = x.sink(), type = x.value().dtype(), where, rows](const Tensor& dy) {
        Tensor share(dy.backend(), {rows, 1}, type);
        dy.backend()(Copy{.x = dy.reshape({rows, 1}), .y = share});
        dy.backend()(
            GatherBackward{.index = where.reshape({rows, 1}), .dy = share, .dx = dx.target()});
      });
}

Var sum(const Var& x, int axis) { return along(x, axis, row_sum); }

Var mean(const Var& x, int axis) {
  const Var total = sum(x, axis);
  const auto n = static_cast<double>(x.shape()[axis]);
  return scale(total, n > 0 ? 1 / n : 0);
}

Var max(const Var& x, int axis) { return along(x, axis, row_max); }

}  // namespace longhand
