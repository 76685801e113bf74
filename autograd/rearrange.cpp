#include "autograd/rearrange.h"

#include <algorithm>
#include <array>

#include "autograd/tape.h"
#include "core/contract/rearrange.h"
#include "core/error.h"

namespace longhand {
namespace {

int axis_of(std::string_view op, const Var& x, int axis) {
  const int rank = x.shape().rank();
  LONGHAND_CHECK(axis >= -rank && axis < rank, op, ": expected the index of an axis of the shape ",
                 x.shape(), ", got ", axis);
  return axis < 0 ? axis + rank : axis;
}

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::array<std::int64_t, Shape::max_rank> extents{};
  std::ranges::copy(shape.extents(), extents.begin());
  extents[axis] = extent;
  return Shape(std::span<const std::int64_t>(extents).first(shape.extents().size()));
}

/// The memory layout (Steps of core/contract/steps.h) of a part of a row-major tensor. The part
/// begins at index `first` of the given axis.
Steps steps_from(const Shape& shape, int axis, std::int64_t first) {
  Steps steps = row_major(shape);
  steps.first = first * steps.along[axis];
  return steps;
}

/// Fills `part` with a copy of the entries of x from index `first` of the axis on.
void take(const Tensor& x, int axis, std::int64_t first, const Target& part) {
  const Shape& shape = part.tensor.shape();
  x.backend()(Rearrange{.shape = shape,
                        .x = x,
                        .from = steps_from(x.shape(), axis, first),
                        .y = part,
                        .to = row_major(shape)});
}

/// The inverse of take(): copies `part` to the entries of y from index `first` of the axis on.
void put(const Tensor& part, int axis, std::int64_t first, const Target& y) {
  part.backend()(Rearrange{.shape = part.shape(),
                           .x = part,
                           .from = row_major(part.shape()),
                           .y = y,
                           .to = steps_from(y.tensor.shape(), axis, first)});
}

/// Permutes axes: axis k of y is axis axes[k] of x.
void exchange(const Tensor& x, const std::vector<int>& axes, const Target& y) {
  const Steps own = row_major(x.shape());
  Steps steps;
  for (std::size_t k = 0; k < axes.size(); ++k) steps.along[k] = own.along[axes[k]];
  const Shape& shape = y.tensor.shape();
  x.backend()(Rearrange{.shape = shape, .x = x, .from = steps, .y = y, .to = row_major(shape)});
}

}  // namespace

Var permute(const Var& x, const std::vector<int>& axes) {
  LONGHAND_CHECK(std::ssize(axes) == x.shape().rank(), "permute: expected ", x.shape().rank(),
                 " axes, got ", axes.size());
  // Axis k of the result is axis there[k] of x, and axis i of x is axis back[i] of the result.
  std::vector<int> there, back(axes.size(), -1);
  std::vector<std::int64_t> extents;
  for (const int axis : axes) {
    const int a = axis_of("permute", x, axis);
    LONGHAND_CHECK(back[a] < 0, "permute: axis ", a, " is given twice");
    back[a] = static_cast<int>(there.size());
    there.push_back(a);
    extents.push_back(x.shape()[a]);
  }
  const Tensor y(x.backend(), Shape(std::span<const std::int64_t>(extents)), x.value().dtype());
  exchange(x.value(), there, y);
  return record("permute", {&x}, y,
                [dx = x.sink(), back](const Tensor& dy) { exchange(dy, back, dx.target()); });
}

Var transpose(const Var& x) {
  const int rank = x.shape().rank();
  LONGHAND_CHECK(rank >= 2, "transpose: x: expected at least 2 axes, got ", x.shape());
  std::vector<int> axes;
  for (int a = 0; a < rank - 2; ++a) axes.push_back(a);
  axes.insert(axes.end(), {rank - 1, rank - 2});
  return permute(x, axes);
}

Var narrow(const Var& x, int axis, std::int64_t first, std::int64_t count) {
  const int a = axis_of("narrow", x, axis);
  LONGHAND_CHECK(first >= 0 && count >= 0 && first <= x.shape()[a] - count,
                 "narrow: expected a range within the ", x.shape()[a], " entries of the axis, got ",
                 count, " entries from entry ", first);
  const Tensor y(x.backend(), with_extent(x.shape(), a, count), x.value().dtype());
  take(x.value(), a, first, y);
  return record("narrow", {&x}, y, [dx = x.sink(), a, first](const Tensor& dy) {
    put(dy, a, first, {dx.sum_in_place(), true});
  });
}

std::vector<Var> split(const Var& x, int axis, const std::vector<std::int64_t>& sizes) {
  std::vector<Var> parts;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    parts.push_back(narrow(x, axis, first, size));
    first += size;
  }
  const std::int64_t extent = x.shape()[axis_of("split", x, axis)];
  LONGHAND_CHECK(first == extent, "split: expected sizes that add up to ", extent, ", got ", first);
  return parts;
}

Var concat(const std::vector<Var>& parts, int axis) {
  LONGHAND_CHECK(!parts.empty(), "concat: expected at least one part, got none");
  const int a = axis_of("concat", parts.front(), axis);
  const Shape& like = parts.front().shape();
  std::int64_t extent = 0;
  const Var* wanting = &parts.front();  // a part that requires a gradient, if any does
  for (const Var& part : parts) {
    const Shape& shape = part.shape();
    LONGHAND_CHECK(shape.rank() == like.rank() && shape == with_extent(like, a, shape[a]),
                   "concat: expected parts whose shapes equal ", like, " except in axis ", a,
                   ", got ", shape);
    LONGHAND_CHECK(!__builtin_add_overflow(extent, shape[a], &extent),
                   "concat: expected parts with fewer than 2^63 entries in total along axis ", a);
    if (part.wants_grad()) wanting = &part;
  }
  const Tensor y(parts.front().backend(), with_extent(like, a, extent),
                 parts.front().value().dtype());
  std::vector<Sink> sinks;
  std::vector<std::int64_t> begins;
  std::int64_t first = 0;
  for (const Var& part : parts) {
    put(part.value(), a, first, y);
    sinks.push_back(part.sink());
    begins.push_back(first);
    first += part.shape()[a];
  }
  return record("concat", {wanting}, y, [sinks, begins, a](const Tensor& dy) {
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      if (sinks[i]) take(dy, a, begins[i], sinks[i].target());
    }
  });
}

Var repeat(const Var& x, const Shape& shape) {
  LONGHAND_CHECK(repeats_to(x.shape(), shape), "repeat: expected a shape to which ", x.shape(),
                 " can be broadcast, got ", shape);
  const Tensor y(x.backend(), shape, x.value().dtype());
  y.backend()(Rearrange{.shape = shape,
                        .x = x.value(),
                        .from = repeated(x.shape(), shape),
                        .y = y,
                        .to = row_major(shape)});
  return record("repeat", {&x}, y, [dx = x.sink()](const Tensor& dy) { dx.add_repeated(dy); });
}

}  // namespace longhand
