#pragma once

#include <vector>

#include "autograd/variable.h"

/// Differentiable operations of core/contract/rearrange.h. Negative axes count from the end.
namespace longhand {

/// Permutes axes: axis k of the result is axis axes[k] of x.
Var permute(const Var& x, const std::vector<int>& axes);
/// Exchanges the last two axes.
Var transpose(const Var& x);

/// Copies the entries first .. first + count - 1 along an axis. Along the first axis, `slice`
/// shares x's memory instead of copying.
Var narrow(const Var& x, int axis, std::int64_t first, std::int64_t count);
inline Var columns(const Var& x, std::int64_t first, std::int64_t count) {
  return narrow(x, -1, first, count);
}
/// Splits x into parts. Their sizes along the axis must add up to x's extent.
std::vector<Var> split(const Var& x, int axis, const std::vector<std::int64_t>& sizes);
/// Joins parts along an axis. All their other extents must be equal.
Var concat(const std::vector<Var>& parts, int axis = 0);

/// Broadcasts x to this shape, by the rules of combine.h.
Var repeat(const Var& x, const Shape& shape);

}  // namespace longhand
