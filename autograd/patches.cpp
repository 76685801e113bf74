#include "autograd/patches.h"

#include <algorithm>

#include "autograd/elementwise.h"
#include "autograd/reduce.h"
#include "autograd/tape.h"
#include "core/contract/elementwise.h"
#include "core/contract/rearrange.h"
#include "core/error.h"

namespace longhand {
namespace {

/// Describes a range of patches along one axis of the image, its height or its width. The range
/// contains each patch whose pixel at the distance `offset` from the patch's first pixel is inside
/// the image, not in the padding. These are `count` consecutive patches, from patch `first` on.
struct Inside {
  std::int64_t first = 0, count = 0;
  /// The index in the image (row or column) of this pixel of the patch `first`.
  std::int64_t pixel = 0;
};

Inside inside(std::int64_t extent, std::int64_t patches, std::int64_t offset,
              const PatchOptions& options) {
  const std::int64_t before = std::max<std::int64_t>(0, options.padding - offset);
  const std::int64_t first = (before + options.stride - 1) / options.stride;
  const std::int64_t pixel = first * options.stride + offset - options.padding;
  const std::int64_t after = (extent - pixel + options.stride - 1) / options.stride;
  return {first, std::clamp<std::int64_t>(after, 0, std::max<std::int64_t>(0, patches - first)),
          pixel};
}

/// Calls body(shape, steps_x, steps_y) for each of the size * size pixel positions of a patch. Each
/// call concerns only the patches whose pixel at this position is inside the image. `shape` is
/// [images, rows, columns, channels], where `rows` and `columns` count these patches. steps_x and
/// steps_y are memory layouts (core/contract/steps.h). They locate the pixels in the images x and
/// in the patches y.
template <class Body>
void for_each_pixel(const Shape& x, const Shape& y, const PatchOptions& options, Body body) {
  const std::int64_t channels = x[3];
  for (std::int64_t row = 0; row < options.size; ++row) {
    for (std::int64_t column = 0; column < options.size; ++column) {
      const Inside rows = inside(x[1], y[1], row, options);
      const Inside columns = inside(x[2], y[2], column, options);
      const Shape shape{x[0], rows.count, columns.count, channels};
      if (shape.size() == 0) continue;
      Steps of_x = row_major(x), of_y = row_major(y);
      of_x.first = rows.pixel * of_x.along[1] + columns.pixel * of_x.along[2];
      of_x.along[1] *= options.stride;
      of_x.along[2] *= options.stride;
      of_y.first = rows.first * of_y.along[1] + columns.first * of_y.along[2] +
                   (row * options.size + column) * channels;
      body(shape, of_x, of_y);
    }
  }
}

/// The number of patches along an axis of x.
std::int64_t patches_along(std::string_view op, const Shape& x, int axis,
                           const PatchOptions& options) {
  const std::int64_t extent = x[axis], least = options.size - 2 * options.padding;
  LONGHAND_CHECK(extent >= least, op, ": x: expected a ", axis == 1 ? "height" : "width",
                 " of at least ", least, " for patches of size ", options.size,
                 " and a padding of ", options.padding, ", got ", extent, " in the shape ", x);
  return (extent - least) / options.stride + 1;
}

Var patches_for(std::string_view op, const Var& x, const PatchOptions& options) {
  const Shape& shape = x.shape();
  LONGHAND_CHECK(shape.rank() == 4, op, ": x: expected [images, height, width, channels], got ",
                 shape);
  options.check(op);
  constexpr std::int64_t most = std::int64_t{1} << 31;
  LONGHAND_CHECK(shape[1] <= most && shape[2] <= most && shape[3] <= most, op,
                 ": x: expected a height, width and number of channels of at most ", most, ", got ",
                 shape);
  const std::int64_t rows = patches_along(op, shape, 1, options);
  const std::int64_t columns = patches_along(op, shape, 2, options);
  const std::int64_t each = options.size * options.size * shape[3];
  std::int64_t size = shape[0];
  LONGHAND_CHECK(!__builtin_mul_overflow(size, rows, &size) &&
                     !__builtin_mul_overflow(size, columns, &size) &&
                     !__builtin_mul_overflow(size, each, &size),
                 op, ": expected fewer than 2^63 numbers in all patches, got ", shape[0], " x ",
                 rows, " x ", columns, " patches of ", each, " numbers");
  const Tensor y(x.backend(), {shape[0], rows, columns, each}, x.value().dtype());
  if (options.padding > 0) y.backend()(Fill{.value = 0, .y = y});
  for_each_pixel(
      shape, y.shape(), options, [&](const Shape& part, const Steps& of_x, const Steps& of_y) {
        y.backend()(Rearrange{.shape = part, .x = x.value(), .from = of_x, .y = y, .to = of_y});
      });
  return record("patches", {&x}, y, [dx = x.sink(), shape, options](const Tensor& dy) {
    const Tensor sum = dx.sum_in_place();
    for_each_pixel(
        shape, dy.shape(), options, [&](const Shape& part, const Steps& of_x, const Steps& of_y) {
          dy.backend()(
              Rearrange{.shape = part, .x = dy, .from = of_y, .y = {sum, true}, .to = of_x});
        });
  });
}

/// Cuts the images x into squares of `size` x `size` pixels that do not overlap. Returns them as
/// [patches, pixels, channels].
Var squares(std::string_view op, const Var& x, std::int64_t size) {
  const Var all = patches_for(op, x, {.size = size, .stride = size});
  const Shape& shape = all.shape();
  return reshape(all, {shape[0] * shape[1] * shape[2], size * size, x.shape()[3]});
}

Var as_images(const Var& y, const Var& x, std::int64_t size) {
  const Shape& shape = x.shape();
  return cast(reshape(y, {shape[0], shape[1] / size, shape[2] / size, shape[3]}),
              x.value().dtype());
}

}  // namespace

void PatchOptions::check(std::string_view subject) const {
  const auto require = [&](std::string_view name, std::int64_t value, std::int64_t low,
                           std::int64_t high) {
    LONGHAND_CHECK(value >= low && value <= high, subject, ": ", name, ": expected ", low, " to ",
                   high, ", got ", value);
  };
  require("size", size, 1, most);
  require("stride", stride, 1, most);
  require("padding", padding, 0, size - 1);
}

Var patches(const Var& x, const PatchOptions& options) {
  return patches_for("patches", x, options);
}

Var max_pool(const Var& x, std::int64_t size) {
  return as_images(max(squares("max_pool", x, size), 1), x, size);
}

Var mean_pool(const Var& x, std::int64_t size) {
  return as_images(mean(squares("mean_pool", x, size), 1), x, size);
}

}  // namespace longhand
