#pragma once

#include "autograd/variable.h"

/// Differentiable operations of core/contract/gather.h.
namespace longhand {

/// Row i of the result is row ids_i of the table, converted to `type`.
Var embedding(const Var& table, const Tensor& ids, DType type);
Var gather(const Var& x, const Tensor& index);

}  // namespace longhand
