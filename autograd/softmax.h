#pragma once

#include "autograd/variable.h"

namespace longhand {

/// Softmax over the last axis. For `causal` see core/contract/softmax.h.
Var softmax(const Var& x, bool causal = false);

}  // namespace longhand
