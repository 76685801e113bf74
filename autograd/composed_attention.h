#pragma once

#include <functional>

#include "autograd/attention.h"
#include "autograd/delta.h"
#include "autograd/deltaformer.h"
#include "autograd/fal.h"

/// Attention mechanisms that are composed of products, softmax and triangular solves. They process
/// one sequence at a time and store every matrix [queries, keys] in the master type. The fused
/// mechanisms are tested against them. Because every operation is differentiable, they can also be
/// used to inspect or change weights.
namespace longhand {

/// A function that receives the attention weights P [heads, queries, keys] of one sequence and
/// returns the weights to be used instead.
using EditWeights = std::function<Var(const Var& weights, std::int64_t sequence)>;

/// A function that returns a tensor to be added to the scores of one sequence. Its arguments are
/// the shape [heads, queries, keys] of the scores and the index of the sequence. Keys that a query
/// does not see are hidden after the addition.
using AddToScores = std::function<Var(const Shape& scores, std::int64_t sequence)>;

Var composed_attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {},
                       const EditWeights& edit = {}, const AddToScores& add = {});
/// Returns the attention weights P [heads, queries, keys] of the sequence with index `sequence`.
Var composed_weights(const ScoreVars& scores, std::int64_t sequence, const RuleVars& rule = {});

/// First-After-Last attention (FAL): each query selects the last earlier key with a positive score
/// and reads the value after it. Backward treats the selection as a constant.
FalResult composed_fal(const FalVars& inputs);

/// ChaCAL: Y = (1 - g) (I - g P-)^-1 P V, computed by solve_triangular. g is gamma, P are the
/// weights of softmax, and P- is the part of P below the diagonal. Requires as many queries as keys
/// in every sequence.
Var composed_chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                    const EditWeights& edit = {}, const Var& sink = {});

/// DeltaFormer: y = (I - diag(gain) S)^-1 v, computed by solve_triangular. S is the softmax of the
/// scores over the earlier keys only. Requires as many queries as keys in every sequence.
Var composed_deltaformer(const DeltaFormerVars& inputs);

/// PaTH: softmax attention in which the tokens after a key, up to the query, reflect the key. Token
/// t, with the vector w_t and the strength beta_t, applies the matrix H_t = I - beta_t w_t w_t^T.
/// The score of key j for query i is therefore
///   q_i . H_i ... H_(j+1) k_j / sqrt(width);
/// q, k, v and w have the same number of heads. beta is [rows of k, heads]. Its type is f64 if q is
/// f64, otherwise f32. If there are fewer queries than keys, the queries are the last tokens of the
/// sequence.
struct PathVars {
  HeadVars q, k, v, w;
  Var beta;
  Segments queries, keys = {};  // default of `keys`: the segments of the queries
};
Var composed_path(const PathVars& inputs);

/// The delta rule, computed with n x n matrices for a sequence of n tokens. No memory is passed
/// from token to token. Row t of W is token t's correction w_t (core/contract/delta.h). W solves
///   (I + A diag(beta)) W = V, where A_ij = a_(j+1) ... a_i k_i . k_j for j < i, otherwise 0;
/// a_t is the decay factor of token t, and beta_t is the strength of its correction. The output is
///   Y = B diag(beta) W, where B_ij = a_(j+1) ... a_i q_i . k_j for j <= i, otherwise 0;
/// q and k are multiplied by the scale before these products.
Var composed_delta(const DeltaVars& inputs);

/// Returns (1 - g) (I - g P-)^-1, where g is gamma and P- is the part of `weights` [heads, n, n]
/// below the diagonal. The entries of the result are in [0, 1], and its rows sum to at most 1.
Var chacal_inverse(const Var& weights, const Var& gamma);
/// Returns ChaCAL's matrix (1 - g) (I - g P-)^-1 P. g is gamma, P is `weights` [heads, n, n], and
/// P- is the part of P below the diagonal. Entry (i, j) is the weight of value j in output i.
Var chacal_matrix(const Var& weights, const Var& gamma);

}  // namespace longhand
