#pragma once

#include "nn/mixing/mixer.h"

namespace longhand::nn {

/// Returns the weights of one head in one sequence of a batch, [tokens, tokens]. Weights of other
/// heads and sequences are not computed. Entry (i, j) is the weight of token j for token i. Weights
/// include reinforcement, so a row may sum to more than 1.
///
/// The result of a head with attention weights P has the type of the parameters and may share the
/// memory of the view. The result of a head that selects keys has the type `type`. Its row i is 1
/// at the token whose value is read (the token after the selected key), and 0 elsewhere. A row
/// without a selected key is 0. If the mixer has neither weights nor selections, the result is
/// empty.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// The weight of each token's value in the head's output, computed from the attention weights P.
/// Every head other than ChaCAL has the weights P. ChaCAL has (1 - g) (I - g P-)^-1 P, a sum over
/// chains of any number of steps, where P- is the part of P below the diagonal.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
