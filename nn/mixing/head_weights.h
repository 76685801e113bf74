#pragma once

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// The weights of one head in one sequence of a batch, [tokens, tokens]. Only these are computed.
/// Entry (i, j) is the weight of token j for token i. For a softmax it is P, of the master type,
/// possibly in memory of the view. For heads that select keys it is 1, in `type`, at the token
/// whose value is read, which is the one after the selected key; rows without a selection are 0.
/// Reinforced weights are included, so a row may sum to more than 1. Empty if the mixer shows
/// neither.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// The share of each token's value in the head's output, given its weights: the weights themselves
/// or, for chains, the sum over all steps, (1 - g) (I - g P-)^-1 P.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
