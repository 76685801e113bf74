#pragma once

#include "nn/models/decoder.h"

namespace longhand::nn {

/// What a training step of a decoder cannot do without.
struct StepWork {
  double operations = 0;  // multiplications and additions in products and softmax attention
  double bytes = 0;       // to and from memory
};

/// Products: 2 operations for each entry of a matrix and token, three times over (forward, and
/// backward to both operands); softmax and ChaCAL 14 for each column of a pair of tokens. FAL's
/// search and what is done token by token are not counted. Bytes: what backward needs is written
/// once and read once, and so are the gradients of the same sizes; of a parameter are read its
/// value twice, its gradient and both moments, and written its value, gradient and moments.
StepWork work_of(const Decoder& model, double tokens, double pairs);

}  // namespace longhand::nn
