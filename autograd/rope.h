#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The columns that are rotated and how, see core/contract/rope.h.
struct RopeLayout {
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false;
};

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout);
/// The same in x's memory. Nothing else may read x afterwards, including backward functions; the
/// output of a product without an activation qualifies.
Var rope_in_place(const Var& x, const Tensor& positions, const Tensor& table,
                  const RopeLayout& layout);

/// Rotations by angles that may require a gradient: [rows, groups * width/2], of the master type.
/// Of the `heads` from `first_column` on, head h uses group h mod groups.
struct RotateLayout {
  std::int64_t first_column = 0, heads = 1, width = 0;
};
Var rotate(const Var& x, const Var& angles, const RotateLayout& layout);
/// The same in x's memory; nothing else may need x.
Var rotate_in_place(const Var& x, const Var& angles, const RotateLayout& layout);

}  // namespace longhand
