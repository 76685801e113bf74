#pragma once

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// What one head reads in one sequence of a batch, [tokens, tokens], and no more than that is
/// computed. Entry (i, j) is token j's weight for token i. Of a softmax that is P, of the master
/// type; it may be memory of the view. Of one that chooses keys it is 1 at the token whose value is
/// read, the one after the chosen key, in `type`; a row is zeros where it chose none. Reinforced
/// weights are shown as they count, so that a row may sum to more than 1. Empty where the mixer
/// shows neither.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// How much of each token's value is in what the head says, from its weights: the same, or, along
/// chains, what all their steps bring together, (1 - g) (I - g P-)^-1 P.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
