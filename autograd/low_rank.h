#pragma once

#include "autograd/variable.h"

namespace longhand {

/// Options of low_rank(), which adds scale (x a^T) b^T to the columns of y from `first_column` on.
struct LowRankOptions {
  std::int64_t first_column = 0;
  double scale = 1;
};

/// Returns y with the product scale (x a^T) b^T added to its columns from first_column on. The
/// shapes are x [rows, in], a [rank, in], b [out, rank] and y [rows, columns].
Var low_rank(const Var& y, const Var& x, const Var& a, const Var& b,
             const LowRankOptions& options = {});
/// low_rank() that overwrites the memory of y. No other operation may use the old values of y
/// afterwards, not even a backward function. The backward function of a matmul() without an
/// activation does not use its output, so y may be such an output.
Var low_rank_in_place(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});
/// The same result as low_rank(), composed of products, narrow() and concat(). Tests compare
/// low_rank() with it.
Var low_rank_composed(const Var& y, const Var& x, const Var& a, const Var& b,
                      const LowRankOptions& options = {});

}  // namespace longhand
