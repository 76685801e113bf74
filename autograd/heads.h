#pragma once

#include <functional>

#include "autograd/variable.h"
#include "core/contract/heads.h"

namespace longhand {

/// Attention heads stored side by side in the columns of a Var (see core/contract/heads.h).
struct HeadVars {
  Var data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  Heads value() const { return {data.value(), first_column, heads, width}; }
  bool wants_grad() const { return data.wants_grad(); }
};

/// Splits all columns of x into `heads` heads of equal width.
HeadVars all_columns(const Var& x, std::int64_t heads);

/// The tensors that receive the gradients of q, k and v. Heads of the same tensor share one
/// gradient tensor, whose columns outside the heads do not change. If `assign` is set, the
/// gradients replace the values in the columns of the heads instead of being added to them.
struct HeadTargets {
  HeadsTarget q, k, v;
};
HeadTargets targets(const HeadVars& q, const HeadVars& k, const HeadVars& v, bool assign);

/// Computes the gradients of an operation's inputs from dy, the gradient of its output heads. The
/// function is empty if no gradient is required. Operations whose names end in _into write their
/// output to given columns and return a HeadsBackward. Several such operations can thus share one
/// output tensor and one entry of the tape. If `assign` is set, the gradients of the input heads
/// overwrite the old values instead of being added. Callers set `assign` if the sharing operations
/// together read all columns of one tensor, such as the q, k and v of one projection. The gradient
/// of this tensor then need not be set to zero first.
using HeadsBackward = std::function<void(const Heads& dy, bool assign)>;

/// Allocates a tensor [rows of q, q.heads * width] for the output heads of an operation.
Heads output_heads(const HeadVars& q, std::int64_t width);
/// Appends the operation `op` with the output y to the tape, as record() of tape.h does.
Var record_heads(std::string_view op, std::initializer_list<const Var*> inputs, const Heads& y,
                 HeadsBackward backward);
/// True if this thread records on a tape and one of the inputs requires a gradient.
bool recorded(std::initializer_list<const Var*> inputs);

}  // namespace longhand
