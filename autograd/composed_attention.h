#pragma once

#include <functional>

#include "autograd/attention.h"
#include "autograd/delta.h"
#include "autograd/deltaformer.h"
#include "autograd/fal.h"

/// The attention mechanisms composed of products, softmax and triangular solves, one sequence at a
/// time, with every T x T matrix in memory, in the type of parameters. The fused mechanisms are
/// tested against them. They can be used to inspect or change weights, because every step is
/// differentiable.
namespace longhand {

/// Receives the weights P [heads, queries, keys] of a sequence and returns the weights to be used
/// in their place.
using EditWeights = std::function<Var(const Var& weights, std::int64_t sequence)>;

/// Returns what is added to the scores S of each sequence, before scores outside the window are
/// hidden.
using AddToScores = std::function<Var(const Shape& scores, std::int64_t sequence)>;

Var composed_attention(const ScoreVars& scores, const HeadVars& v, const RuleVars& rule = {},
                       const EditWeights& edit = {}, const AddToScores& add = {});
/// P [heads, queries, keys] of a single sequence.
Var composed_weights(const ScoreVars& scores, std::int64_t sequence, const RuleVars& rule = {});

/// FAL. The selected key m is determined from the scores and treated as a constant in backward.
FalResult composed_fal(const FalVars& inputs);

/// ChaCAL: Y = (1 - g) (I - g P-)^-1 P V, by solve_triangular. P- is P below its diagonal. Queries
/// and keys must be the same tokens.
Var composed_chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                    const EditWeights& edit = {}, const Var& sink = {});

/// y = (I - diag(gain) S)^-1 v by solve_triangular, for queries and keys of the same tokens. S is
/// the softmax over the earlier keys only.
Var composed_deltaformer(const DeltaFormerVars& inputs);

/// PaTH: softmax attention whose queries are reflected by all tokens between key and query. With
/// H_t = I - beta_t w_t w_t^T, the score of key j for query i is scale q_i . H_i ... H_(j+1) k_j.
/// q, k, v and w have the same heads; beta is [rows of k, heads], of the type of parameters. If
/// there are fewer queries than keys, the queries are the last positions.
struct PathVars {
  HeadVars q, k, v, w;
  Var beta;
  Segments queries, keys = {};  // keys: empty if equal to the segments of the queries
};
Var composed_path(const PathVars& inputs);

/// The delta rule without a state. The written values W solve (I + A diag(beta)) W = V, where A_ij
/// = a_(j+1) ... a_i k_i . k_j for j < i. Y is B diag(beta) W, where B is the lower triangle,
/// including the diagonal, of the same matrix with q_i in place of k_i.
Var composed_delta(const DeltaVars& inputs);

/// (1 - g) (I - g P-)^-1 for P [heads, T, T], where P- is P below its diagonal. The entries of
/// the result are in [0, 1], and its rows sum to at most 1.
Var chacal_inverse(const Var& weights, const Var& gamma);
/// ChaCAL's matrix (1 - g) (I - g P-)^-1 P for P [heads, T, T], where P- is P below its diagonal.
/// Entry (i, j) is the weight of value j in output i.
Var chacal_matrix(const Var& weights, const Var& gamma);

}  // namespace longhand
