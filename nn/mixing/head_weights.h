#pragma once

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// The weights of one head in one sequence of a batch, [tokens, tokens]; no others are computed.
/// Entry (i, j) is the weight of token j for token i. For a softmax it is P, of the type of the
/// parameters, possibly in memory of the view. For heads that select keys, the entry is 1, of type
/// `type`, at the token whose value is read, which follows the selected key; rows without a
/// selection are 0. Reinforcement is included, so a row may sum to more than 1. Empty if the mixer
/// has neither weights nor selections.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// The weight of each token's value in the head's output, given the attention weights. These are
/// equal except in a chain, where the values' weights are (1 - g) (I - g P-)^-1 P, a sum over
/// chains of any number of steps. P- is P below the diagonal.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
