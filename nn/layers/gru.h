#pragma once

#include "core/segments.h"
#include "nn/layers/linear.h"

namespace longhand::nn {

/// A recurrent layer (autograd/gru.h): x [tokens, in] -> h [tokens, width]. The state of a sequence
/// starts at 0. Initial biases are 0. The operations depend on the length of each sequence, so
/// training steps cannot be recorded and replayed. A model with this layer must therefore return
/// false from Model::repeats().
class Gru {
 public:
  Gru() = default;
  Gru(const Scope& scope, std::int64_t in, std::int64_t width);

  Var operator()(const Var& x, const Segments& segments) const;

  /// Multiplies the layer's input by three matrices: those of the reset gate, the update gate and
  /// the candidate state. The results are side by side, [tokens, 3 width].
  Linear input;
  /// u: the matrices by which the previous state is multiplied for the reset gate, the update gate
  /// and the candidate state, [3 width, width]. bias: a bias that is added to the last of these
  /// products, [width].
  Parameter u, bias;
};

}  // namespace longhand::nn
