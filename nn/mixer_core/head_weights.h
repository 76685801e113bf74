#pragma once

#include "nn/mixer_core/mixer.h"

namespace longhand::nn {

/// Returns the attention weights of one head in one sequence of a batch, [tokens, tokens]. Only
/// these weights are computed. Entry (i, j) is the weight that token i gives to token j. The
/// weights include the amounts that reinforced heads add, so a row may sum to more than 1.
///
/// If the head computes attention weights, the result has the type of the parameters and may share
/// the memory of `view`. If the head selects keys instead (see FalHeads), the result has the type
/// `type`. If token i selected the key of token j, it reads the value of token j + 1. Entry
/// (i, j + 1) is then 1, and all other entries of row i are 0. If token i selected no key, the
/// whole row is 0. If the mixer has neither weights nor selections, the result is empty.
Tensor head_weights(const MixerView& view, const Segments& sequences, std::int64_t sequence,
                    std::int64_t head, DType type = DType::f32);

/// Returns the weight of each token's value in each output of the head, computed from `weights`,
/// the attention weights P of the head. For most heads, the result is P. For ChaCAL heads with
/// gamma g, it is (1 - g) (I - g P-)^-1 P, where P- is the part of P below the diagonal. This
/// matrix is a sum over chains of tokens, of all lengths, in which each token attends to the next.
Tensor value_weights(const MixerView& view, const Tensor& weights, std::int64_t head);

}  // namespace longhand::nn
