#pragma once

#include "autograd/variable.h"

namespace longhand {

/// Softmax over the last axis. If `causal` is set, a row does not see later columns, and their
/// entries become 0 (core/contract/softmax.h).
Var softmax(const Var& x, bool causal = false);

}  // namespace longhand
