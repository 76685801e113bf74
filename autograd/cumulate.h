#pragma once

#include "autograd/variable.h"
#include "core/contract/cumulate.h"

/// Differentiable operations of core/contract/cumulate.h.
namespace longhand {

/// Sums of x over the rows of each segment up to each row or, if `reverse`, from each row on.
Var cumulate(const Var& x, const Segments& segments, bool reverse = false);
/// As above, for sequences that arrive in pieces: the sums start from the segment's row of
/// `memory`, which then receives the last sum. x must not require a gradient.
Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory);

/// ln n for each query, where n is the number of keys up to it or, if `whole`, of all keys; equal
/// in all columns.
Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole = false);

}  // namespace longhand
