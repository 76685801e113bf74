#pragma once

#include "autograd/variable.h"

namespace longhand {

/// The columns that rope() rotates, and the kind of rotation; see core/contract/rope.h.
struct RopeLayout {
  std::int64_t first_column = 0, heads = 1, width = 0, dims = 0;
  bool interleaved = false;
};

Var rope(const Var& x, const Tensor& positions, const Tensor& table, const RopeLayout& layout);
/// rope() that overwrites the memory of x. No other operation may use the old values of x
/// afterwards, not even a backward function. The backward function of a matmul() without an
/// activation does not use its output, so x may be such an output.
Var rope_in_place(const Var& x, const Tensor& positions, const Tensor& table,
                  const RopeLayout& layout);

/// The heads that rotate() rotates. They are stored side by side from column `first_column` on. The
/// angles, which the model computes, are [rows, groups * width/2]. They have the master type and
/// may require a gradient. Head h has the angles of group h mod groups.
struct RotateLayout {
  std::int64_t first_column = 0, heads = 1, width = 0;
};
Var rotate(const Var& x, const Var& angles, const RotateLayout& layout);
/// rotate() that overwrites the memory of x. No other operation may use the old values of x
/// afterwards.
Var rotate_in_place(const Var& x, const Var& angles, const RotateLayout& layout);

}  // namespace longhand
