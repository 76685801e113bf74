#pragma once

#include "nn/models/decoder.h"

namespace longhand::nn {

/// Lower bounds for the work of a training step.
struct StepWork {
  double operations = 0;  // multiplications and additions in matrix products and softmax attention
  double bytes = 0;       // bytes read from and written to memory
};

/// Operations: a product counts 2 operations per matrix entry and token, three times (forward, and
/// backward to both operands). Softmax and ChaCAL attention count 14 per column of a pair of
/// tokens. FAL's search and token-wise operations are not counted. Bytes: everything stored for
/// backward, and a gradient of the same size for each, is written once and read once. For each
/// parameter, the value is read twice, the gradient and both moments once, and value, gradient and
/// moments are written once.
StepWork work_of(const Decoder& model, double tokens, double pairs);

}  // namespace longhand::nn
