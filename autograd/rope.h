#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The columns to be rotated, and how; see core/contract/rope.h.
struct RopeLayout {
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false;
};

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout);
/// As above, but overwrites x's memory. No other operation, including backward functions, may use x
/// afterwards. The output of a product without an activation satisfies this.
Var rope_in_place(const Var& x, const Tensor& positions, const Tensor& table,
                  const RopeLayout& layout);

/// Rotations by angles that may require a gradient: [rows, groups * width/2], of the type of
/// parameters. Of the `heads` heads from `first_column` on, head h uses the angles of group h mod
/// groups.
struct RotateLayout {
  std::int64_t first_column = 0, heads = 1, width = 0;
};
Var rotate(const Var& x, const Var& angles, const RotateLayout& layout);
/// As above, but overwrites x's memory. No other operation may use x afterwards.
Var rotate_in_place(const Var& x, const Var& angles, const RotateLayout& layout);

}  // namespace longhand
