#pragma once

#include "autograd/variable.h"
#include "core/contract/cumulate.h"

/// Differentiable operations of core/contract/cumulate.h.
namespace longhand {

/// Running sums of x in each segment: row i of the result is the sum from the segment's first row
/// to row i. If `reverse` is set, it is the sum from row i to the segment's last row.
Var cumulate(const Var& x, const Segments& segments, bool reverse = false);
/// Like cumulate(), for sequences that are processed in pieces. The running sums of a segment start
/// with the values in the segment's row of `memory`. This row then receives the sums at the
/// segment's last token. x must not require a gradient.
Var cumulate_on(const Var& x, const Segments& segments, const Tensor& memory);

/// Returns a tensor [query tokens, columns]. In the row of each query, all columns contain the
/// number ln max(2, n). n is the number of keys up to the query or, if `whole` is set, of all keys
/// in the query's segment.
Tensor log_counts(Backend& backend, DType type, const Segments& queries, const Segments& keys,
                  std::int64_t columns, bool whole = false);

}  // namespace longhand
