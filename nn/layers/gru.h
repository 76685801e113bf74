#pragma once

#include "core/segments.h"
#include "nn/layers/linear.h"

namespace longhand::nn {

/// A recurrent layer (autograd/gru.h): x [tokens, in] -> h [tokens, width]. The state of a sequence
/// starts at 0. Initial biases are 0. A model with this layer must return false from
/// Model::repeats().
class Gru {
 public:
  Gru() = default;
  Gru(const Scope& scope, std::int64_t in, std::int64_t width);

  Var operator()(const Var& x, const Segments& segments) const;

  Linear input;       // makes the parts [r | z | n], [tokens, 3 width]
  Parameter u, bias;  // [3 width, width]; [width], the bias of U_n
};

}  // namespace longhand::nn
