#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/gather.h.
namespace longhand {

/// Rows of the table, as activations of this type.
Var embedding(const Var& table, const Tensor& ids, DType type);
Var gather(const Var& x, const Tensor& index);

}  // namespace longhand
