#pragma once

#include <functional>

#include "autograd/variable.h"
#include "core/contract/heads.h"

namespace longhand {

/// Heads in place (core/contract/heads.h) of a value that may want a gradient.
struct HeadVars {
  Var data;
  std::int64_t first_column = 0, heads = 1, width = 0;

  explicit operator bool() const { return static_cast<bool>(data); }
  Heads value() const { return {data.value(), first_column, heads, width}; }
  bool wants_grad() const { return data.wants_grad(); }
};

/// All columns of x as so many heads.
HeadVars all_columns(const Var& x, std::int64_t heads);

/// Where the gradients of q, k and v go. Heads of one tensor share its gradient, of which columns
/// without a head get zeros. assign: the gradient exists and its old contents do not count.
struct HeadTargets {
  HeadsTarget q, k, v;
};
HeadTargets targets(const HeadVars& q, const HeadVars& k, const HeadVars& v, bool assign);

/// Turns the gradient of an output's heads into those of its inputs. The ops of this family that
/// end in _into write their output where they are told and return this, so that heads of several
/// kinds can share one tensor and one record. Empty: no gradient is wanted. assign: as in targets,
/// for callers whose heads cover every column of a tensor between them and who asked for its
/// target.
using HeadsBackward = std::function<void(const Heads& dy, bool assign)>;

/// A new [q's tokens, heads * width] tensor for an output.
Heads output_heads(const HeadVars& q, std::int64_t width);
/// The output as a value: `inputs` as record() takes them.
Var record_heads(std::string_view op, std::initializer_list<const Var*> inputs, const Heads& y,
                 HeadsBackward backward);
/// A tape is current and one of them wants a gradient.
bool recorded(std::initializer_list<const Var*> inputs);

}  // namespace longhand
