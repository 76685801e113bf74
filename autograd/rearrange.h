#pragma once

#include <vector>

#include "autograd/variable.h"

/// Differentiable operations of core/contract/rearrange.h. Negative axes count from the end.
namespace longhand {

/// Permutes axes: axis k of the result is axis axes[k] of x.
Var permute(const Var& x, const std::vector<int>& axes);
/// Exchanges the last two axes.
Var transpose(const Var& x);

/// Returns a copy of the entries first .. first + count - 1 along an axis. For the first axis,
/// slice() of elementwise.h avoids the copy by sharing the memory of x.
Var narrow(const Var& x, int axis, std::int64_t first, std::int64_t count);
inline Var columns(const Var& x, std::int64_t first, std::int64_t count) {
  return narrow(x, -1, first, count);
}
/// Splits x into parts along an axis. The sizes must add up to the extent of this axis.
std::vector<Var> split(const Var& x, int axis, const std::vector<std::int64_t>& sizes);
/// Joins parts along an axis. The extents of all other axes must be equal.
Var concat(const std::vector<Var>& parts, int axis = 0);

/// Broadcasts x to `shape` by the rules of autograd/combine.h.
Var repeat(const Var& x, const Shape& shape);

}  // namespace longhand
