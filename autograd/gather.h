#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/gather.h.
namespace longhand {

/// The rows of the table with these ids, converted to `type`.
Var embedding(const Var& table, const Tensor& ids, DType type);
Var gather(const Var& x, const Tensor& index);

}  // namespace longhand
