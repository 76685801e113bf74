#pragma once

#include "autograd/variable.h"

namespace longhand {

/// `first_column` is the first column of y to which the product is added. `scale` is its factor.
struct LowRankOptions {
  std::int64_t first_column = 0;
  double scale = 1;
};

/// Adds scale (x a^T) b^T to the columns of y from first_column on. x [rows, in], a [rank, in], b
/// [out, rank], y [rows, columns]
Var low_rank(const Var& y, const Var& x, const Var& a, const Var& b,
             const LowRankOptions& options = {});
/// As above, but overwrites the memory of y. No other operation may use y afterwards, not even a
/// backward function. The output of a product without an activation satisfies this.
Var low_rank_in_place(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});
/// The same result, composed of products, narrow() and concat(). The two functions above are tested
/// against it.
Var low_rank_composed(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});

}  // namespace longhand
