#pragma once

#include "nn/models/decoder.h"

namespace longhand::nn {

/// Lower bounds for the work of a training step.
struct StepWork {
  double operations = 0;  // multiplications and additions in matrix products and softmax attention
  double bytes = 0;       // bytes read from and written to memory
};

/// Lower bounds for the work of a training step with `tokens` tokens. `pairs` is the number of
/// pairs (i, j) such that token i attends to token j.
///
/// Each matrix entry counts 6 operations per token: 2 in the forward pass, and 2 for the gradient
/// of each of the two operands in the backward pass. Each mixer (group of heads) adds its
/// operations_of_pair() per pair and its operations_of_token() per token.
///
/// Each activation that is stored for the backward pass is written once and read once, and so is
/// its gradient. Each parameter is accessed 8 times, by the forward pass, the backward pass and the
/// optimizer together.
StepWork work_of(const Decoder& model, double tokens, double pairs);

}  // namespace longhand::nn
