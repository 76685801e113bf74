#pragma once

#include "autograd/variable.h"
#include "core/contract/cumulate.h"

/// Differentiable forms of core/contract/cumulate.h.
namespace longhand {

/// Sums of x over the rows of each segment up to a row, or in reverse from it on.
Var cumulate(const Var& x, const Segments& segments, bool reverse = false);
/// The same of sequences that come in pieces: sums begin with memory's row of the segment and end
/// in it. x may not want a gradient.
Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory);

/// ln n of each query, the same in so many columns.
Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole = false);

}  // namespace longhand
