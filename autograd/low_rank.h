#pragma once

#include "autograd/variable.h"

namespace longhand {

/// First column of y to which the product is added, and its factor.
struct LowRankOptions {
  std::int64_t first_column = 0;
  double scale = 1;
};

/// y + scale (x a^T) b^T in columns first_column, ... of y. x [rows, in], a [rank, in], b [out,
/// rank], y [rows, columns]
Var low_rank(const Var& y, const Var& x, const Var& a, const Var& b,
             const LowRankOptions& options = {});
/// The same in y's memory. Nothing else may read y afterwards, including backward functions; the
/// output of a product without an activation qualifies.
Var low_rank_in_place(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});
/// The same, composed of products and of narrowed and joined columns. The other two are tested
/// against it.
Var low_rank_composed(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});

}  // namespace longhand
