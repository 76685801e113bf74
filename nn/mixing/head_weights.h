#pragma once

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// The weights of one head in one sequence of a batch, [tokens, tokens]. Only these weights are
/// computed. Entry (i, j) is the weight of token j for token i. For a softmax, the result is P. It
/// has the type of the parameters and may share the memory of the view. For heads that select keys,
/// the result has the type `type`. Row i is 1 at the token whose value is read (the token after the
/// selected key), and 0 elsewhere. A row without a selection is 0. Reinforcement is included, so a
/// row may sum to more than 1. The result is empty if the mixer has neither weights nor selections.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// The weight of each token's value in the head's output, computed from the attention weights P.
/// The result is P itself except for ChaCAL, where it is (1 - g) (I - g P-)^-1 P, a sum over chains
/// of any number of steps. P- is the part of P below the diagonal.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
