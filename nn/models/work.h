#pragma once

#include "nn/models/decoder.h"

namespace longhand::nn {

/// Lower bounds on the work of a decoder's training step.
struct StepWork {
  double operations = 0;  // multiplications and additions of products and softmax attention
  double bytes = 0;       // bytes to and from memory
};

/// Products count 2 operations per matrix entry and token, three times (forward, and backward to
/// both operands). Softmax and ChaCAL count 14 per column of a pair of tokens. FAL's search and
/// token-wise operations are not counted. Bytes: everything that backward needs, and each gradient
/// of the same size, is written once and read once. Of each parameter the value is read twice, the
/// gradient and both moments once, and value, gradient and moments are written.
StepWork work_of(const Decoder& model, double tokens, double pairs);

}  // namespace longhand::nn
