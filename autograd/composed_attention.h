#pragma once

#include <functional>

#include "autograd/attention.h"
#include "autograd/delta.h"
#include "autograd/deltaformer.h"
#include "autograd/fal.h"

/// Attention mechanisms that are composed of products, softmax and triangular solves. They process
/// one sequence at a time and store every T x T matrix in the master type. The fused mechanisms are
/// tested against them. Because every step is differentiable, they can also be used to inspect or
/// change weights.
namespace longhand {

/// Receives the weights P [heads, queries, keys] of a sequence and returns the weights to be used
/// in their place.
using EditWeights = std::function<Var(const Var& weights, std::int64_t sequence)>;

/// Returns a tensor that is added to the scores of each sequence. It receives the shape of the
/// scores. Scores outside the window are hidden after the addition.
using AddToScores = std::function<Var(const Shape& scores, std::int64_t sequence)>;

Var composed_attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {},
                       const EditWeights& edit = {}, const AddToScores& add = {});
/// P [heads, queries, keys] of a single sequence.
Var composed_weights(const ScoreVars& scores, std::int64_t sequence, const RuleVars& rule = {});

/// FAL. Backward treats the selected key m of each query as a constant.
FalResult composed_fal(const FalVars& inputs);

/// ChaCAL: Y = (1 - g) (I - g P-)^-1 P V, computed by solve_triangular. P- is the part of P below
/// the diagonal. Requires as many queries as keys in every sequence.
Var composed_chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                    const EditWeights& edit = {}, const Var& sink = {});

/// y = (I - diag(gain) S)^-1 v, computed by solve_triangular. S is the softmax of the scores over
/// the earlier keys only. Requires as many queries as keys in every sequence.
Var composed_deltaformer(const DeltaFormerVars& inputs);

/// PaTH: softmax attention in which the tokens after a key, up to the query, reflect the query.
/// With the reflections H_t = I - beta_t w_t w_t^T, the score of key j for query i is
///   scale q_i . H_i ... H_(j+1) k_j
/// q, k, v and w have the same number of heads. beta is [rows of k, heads] and has the master type.
/// If there are fewer queries than keys, the queries are the last positions.
struct PathVars {
  HeadVars q, k, v, w;
  Var beta;
  Segments queries, keys = {};  // default of `keys`: the segments of the queries
};
Var composed_path(const PathVars& inputs);

/// The delta rule as products of T x T matrices. No state is passed from token to token. The rows
/// of W are the corrections w_t, which solve
///   (I + A diag(beta)) W = V, where A_ij = a_(j+1) ... a_i k_i . k_j for j < i
/// Here a_t is the decay factor of token t, and beta_t is the strength of its correction. The
/// output is Y = B diag(beta) W. B is like A, but with q_i in place of k_i, and with entries for j
/// <= i.
Var composed_delta(const DeltaVars& inputs);

/// (1 - g) (I - g P-)^-1 for P [heads, T, T], where P- is the part of P below the diagonal. The
/// entries of the result are in [0, 1], and its rows sum to at most 1.
Var chacal_inverse(const Var& weights, const Var& gamma);
/// ChaCAL's matrix (1 - g) (I - g P-)^-1 P for P [heads, T, T], where P- is the part of P below the
/// diagonal. Entry (i, j) is the weight of value j in output i.
Var chacal_matrix(const Var& weights, const Var& gamma);

}  // namespace longhand
