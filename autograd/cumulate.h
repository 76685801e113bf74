#pragma once

#include "autograd/variable.h"
#include "core/contract/cumulate.h"

/// Differentiable operations of core/contract/cumulate.h.
namespace longhand {

/// Sums of x over the rows of each segment, from the first row to each row. If `reverse` is set,
/// the sums extend from each row to the last.
Var cumulate(const Var& x, const Segments& segments, bool reverse = false);
/// As above, for sequences that are processed in pieces. The sums of a segment start at the
/// segment's row of `memory`. This row then receives the sums at the last token. x must not require
/// a gradient.
Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory);

/// ln max(2, n) for each query, where n is the number of keys up to the query or, if `whole` is
/// set, of all keys in its segment. All columns are equal.
Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole = false);

}  // namespace longhand
