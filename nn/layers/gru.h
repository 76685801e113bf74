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

  Linear input;  // computes x_r, x_z and x_n of autograd/gru.h side by side, [tokens, 3 width]
  // u: the matrices U_r, U_z and U_n, [3 width, width]; bias: the bias of U_n, [width].
  Parameter u, bias;
};

}  // namespace longhand::nn
