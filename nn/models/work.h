#pragma once

#include "nn/models/decoder.h"

namespace longhand::nn {

/// Lower bounds for the work of a training step.
struct StepWork {
  double operations = 0;  // multiplications and additions in matrix products and softmax attention
  double bytes = 0;       // bytes read from and written to memory
};

/// Operations: each matrix entry counts 6 operations per token: 2 in forward, and 2 for each
/// operand's gradient in backward. Each mixer adds its operations_of_pair() and
/// operations_of_token(). Bytes: all activations stored for backward, and as many gradients of
/// activations, are written once and read once. Each parameter counts 8 accesses, by forward,
/// backward and the optimizer together.
StepWork work_of(const Decoder& model, double tokens, double pairs);

}  // namespace longhand::nn
