#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The columns to be rotated, and the kind of rotation; see core/contract/rope.h.
struct RopeLayout {
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false;
};

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout);
/// As above, but overwrites the memory of x. No other operation may use x afterwards, not even a
/// backward function. The output of a product without an activation satisfies this.
Var rope_in_place(const Var& x, const Tensor& positions, const Tensor& table,
                  const RopeLayout& layout);

/// The columns to be rotated by angles. The angles are [rows, groups * width/2], have the master
/// type and may require a gradient. Head h, counted from `first_column`, has the angles of group h
/// mod groups.
struct RotateLayout {
  std::int64_t first_column = 0, heads = 1, width = 0;
};
Var rotate(const Var& x, const Var& angles, const RotateLayout& layout);
/// As above, but overwrites the memory of x. No other operation may use x afterwards.
Var rotate_in_place(const Var& x, const Var& angles, const RotateLayout& layout);

}  // namespace longhand
