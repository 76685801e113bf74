#pragma once

#include "autograd/variable.h"
#include "core/contract/cumulate.h"

/// Differentiable operations of core/contract/cumulate.h.
namespace longhand {

/// Sums of x over the rows of each segment up to each row, or, reversed, from each row on.
Var cumulate(const Var& x, const Segments& segments, bool reverse = false);
/// The same for sequences that arrive in pieces: sums start from the segment's row of `memory`,
/// which then receives their end. x may not require a gradient.
Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory);

/// ln n of each query, equal in all columns.
Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole = false);

}  // namespace longhand
