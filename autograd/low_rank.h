#pragma once

#include "autograd/variable.h"

namespace longhand {

/// Which columns of y the product is added to, from this one on, and its factor.
struct LowRankOptions {
  std::int64_t first_column = 0;
  double scale = 1;
};

/// y + scale (x a^T) b^T, in columns first_column, ... of y. x [rows, in], a [rank, in],
/// b [out, rank], y [rows, columns]
Var low_rank(const Var& y, const Var& x, const Var& a, const Var& b,
             const LowRankOptions& options = {});
/// The same in y's memory, for a y that nothing else reads afterwards, backward passes included:
/// the output of a product without an activation is one.
Var low_rank_in_place(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});
/// The same of products, narrowed and joined columns: what the others are held against.
Var low_rank_composed(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});

}  // namespace longhand
