#pragma once

#include "autograd/variable.h"

namespace longhand {

/// Over the last axis; causal: see core/contract/softmax.h.
Var softmax(const Var& x, bool causal = false);

}  // namespace longhand
