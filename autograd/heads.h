#pragma once

#include <functional>

#include "autograd/variable.h"
#include "core/contract/heads.h"

namespace longhand {

/// Heads (core/contract/heads.h) in the columns of a Var.
struct HeadVars {
  Var data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  Heads value() const { return {data.value(), first_column, heads, width}; }
  bool wants_grad() const { return data.wants_grad(); }
};

/// All columns of x, as `heads` heads.
HeadVars all_columns(const Var& x, std::int64_t heads);

/// The targets of the gradients of q, k and v. If heads belong to the same tensor, they share its
/// gradient, and columns without a head receive zeros. If `assign` is set, the heads' columns of
/// the existing gradient are overwritten.
struct HeadTargets {
  HeadsTarget q, k, v;
};
HeadTargets targets(const HeadVars& q, const HeadVars& k, const HeadVars& v, bool assign);

/// Computes the gradients of an operation's inputs from dy, the gradient of its output heads.
/// Operations whose names end in _into write their output to given columns and return such a
/// function. Heads of several kinds can then share one output tensor and one record. The function
/// is empty if no gradient is required. For `assign` see HeadTargets; callers set it if their heads
/// together cover every column of a tensor.
using HeadsBackward = std::function<void(const Heads& dy, bool assign)>;

/// A new tensor [q's tokens, heads * width] for an output.
Heads output_heads(const HeadVars& q, std::int64_t width);
/// Records y as the output of the operation. For `inputs` see record().
Var record_heads(std::string_view op, std::initializer_list<const Var*> inputs, const Heads& y,
                 HeadsBackward backward);
/// True if a tape is current and one of the values requires a gradient.
bool recorded(std::initializer_list<const Var*> inputs);

}  // namespace longhand
