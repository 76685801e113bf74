#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/shape.h"

/// Steps describe where the entries of an operand are stored. With them, one operation can process
/// operands whose entries are stored in different orders.
namespace longhand {

/// The index of an entry along each axis of a shape. Axes that the shape lacks have index 0.
using Index = std::array<std::int64_t, Shape::max_rank>;

/// The places of a tensor's entries in memory. The entry with index i_a along each axis a is stored
/// in element first + sum_a i_a along[a]. An axis with the step along[a] = 0 repeats the same
/// entries.
struct Steps {
  std::int64_t first = 0;
  Index along{};

  std::int64_t operator()(const Index& i) const {
    std::int64_t at = first;
    for (std::size_t a = 0; a < i.size(); ++a) at += i[a] * along[a];
    return at;
  }
};

/// The steps (strides, in elements) of a tensor of this shape that is stored in row-major order.
Steps row_major(const Shape& shape);
/// The steps (strides) of a tensor of shape x that is broadcast to shape y. An axis that x lacks,
/// or whose extent in x is 1, has the step 0.
Steps repeated(const Shape& x, const Shape& y);
/// True if x can be broadcast to y.
bool repeats_to(const Shape& x, const Shape& y);
/// The smallest shape to which both shapes can be broadcast. If there is none, throws an Error for
/// the operation `op`.
Shape common_shape(std::string_view op, const Shape& a, const Shape& b);

/// Calls `body` with the index of every entry of the shape, in row-major order.
template <class Body>
void for_each_index(const Shape& shape, Body&& body) {
  Index i{};
  for (std::int64_t left = shape.size(); left > 0; --left) {
    body(i);
    for (int a = shape.rank() - 1; a >= 0 && ++i[a] == shape[a]; --a) i[a] = 0;
  }
}

/// A loop over the entries of several operands, with as few axes as possible: three outer axes and
/// one inner axis. An index (i_0, i_1, i_2) along the outer axes selects a line, which consists of
/// the `inner` entries along the inner axis. In operand k, this line begins at element first[k] +
/// sum_a i_a outer_step[a][k], and its entries are inner_step[k] elements apart. All members are
/// plain arrays, so a Walk can be passed to kernels by value.
template <int operands>
struct Walk {
  std::int64_t outer[3] = {1, 1, 1};
  std::int64_t inner = 1;
  std::int64_t first[operands] = {};
  std::int64_t outer_step[3][operands] = {};
  std::int64_t inner_step[operands] = {};

  std::int64_t lines() const { return outer[0] * outer[1] * outer[2]; }
  std::int64_t begin(std::int64_t line, int k) const {
    const std::int64_t rest = line / outer[2];
    return first[k] + rest / outer[1] * outer_step[0][k] + rest % outer[1] * outer_step[1][k] +
           line % outer[2] * outer_step[2][k];
  }
};

/// Returns the Walk over a shape in row-major order. Axes with one entry are dropped. Neighbouring
/// axes are merged if in every operand a single step can describe both of them.
template <int operands>
Walk<operands> walk(const Shape& shape, const Steps (&steps)[operands]) {
  Walk<operands> walk;
  for (int k = 0; k < operands; ++k) walk.first[k] = steps[k].first;
  // The axis of `walk` that was set last: 3 is the inner axis, and 2, 1 and 0 are the outer axes,
  // which are set in this order. 4 means that no axis is set yet.
  int at = 4;
  const auto extent = [&](int a) -> std::int64_t& { return a == 3 ? walk.inner : walk.outer[a]; };
  const auto step = [&](int a) { return a == 3 ? walk.inner_step : walk.outer_step[a]; };
  for (int a = shape.rank() - 1; a >= 0; --a) {
    if (shape[a] == 1) continue;
    bool joins = at < 4;
    for (int k = 0; joins && k < operands; ++k) {
      joins = steps[k].along[a] == step(at)[k] * extent(at);
    }
    if (joins) {
      extent(at) *= shape[a];
      continue;
    }
    --at;
    extent(at) = shape[a];
    for (int k = 0; k < operands; ++k) step(at)[k] = steps[k].along[a];
  }
  return walk;
}

}  // namespace longhand
