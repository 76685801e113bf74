#pragma once

#include <functional>

#include "autograd/attention.h"
#include "autograd/delta.h"
#include "autograd/fal.h"

/// The mechanisms composed of products, softmax and triangular solves, sequence by sequence, with
/// every T x T matrix in memory, in the master type. The fused mechanisms are checked against them.
/// Use them to inspect or change weights: everything is differentiable.
namespace longhand {

/// Receives the softmax matrices P [heads, queries, keys] of a sequence and returns the matrices to
/// use instead.
using EditWeights = std::function<Var(const Var& weights, std::int64_t sequence)>;

/// `add` is added to the scores S of each sequence before scores outside the window are hidden.
using AddToScores = std::function<Var(const Shape& scores, std::int64_t sequence)>;

Var composed_attention(const ScoreVars& scores, const HeadVars& v, const EditWeights& edit = {},
                       const AddToScores& add = {});
/// P [heads, queries, keys] of one sequence by itself.
Var composed_weights(const ScoreVars& scores, std::int64_t sequence);

/// The choice of m is read from the scores and then held fixed.
FalResult composed_fal(const FalVars& inputs);

/// Y = (1 - g) (I - g P-)^-1 P V by solve_triangular, for queries that are the keys' tokens.
Var composed_chacal(const ScoreVars& scores, const HeadVars& v, const Var& gamma,
                    const EditWeights& edit = {});

/// y = (I - diag(gain) S)^-1 v by solve_triangular, for queries that are the keys' tokens. S is the
/// softmax over earlier keys alone.
Var composed_chain(const ScoreVars& scores, const HeadVars& v, const Var& gain);

/// Softmax attention whose queries are reflected on the way to each key, as PaTH's: with H_t = I -
/// beta_t w_t w_t^T, the score of key j for query i is scale q_i . H_i ... H_(j+1) k_j. q, k, v and
/// w have the same heads; beta is [rows of k, heads], of the master type. If there are fewer
/// queries than keys, the queries are the last positions.
struct PathVars {
  HeadVars q, k, v, w;
  Var beta;
  Segments queries, keys = {};  // empty: the same as the queries'
};
Var composed_path(const PathVars& inputs);

/// The delta rule without a memory. The written values are the W of (I + A diag(beta)) W = V, where
/// A_ij = a_(j+1) ... a_i k_i . k_j for j < i. Y is the lower triangle of the same matrix with q_i
/// for k_i, times diag(beta) W.
Var composed_delta(const DeltaVars& inputs);

/// (1 - g) (I - g P-)^-1 for P [heads, T, T], where P- is P below its diagonal. Entries lie in [0,
/// 1], and rows sum to at most 1.
Var chacal_inverse(const Var& weights, const Var& gamma);
/// ChaCAL's matrix from P [heads, T, T]: (1 - g) (I - g P-)^-1 P, each output's share of each
/// value.
Var chacal_matrix(const Var& weights, const Var& gamma);

}  // namespace longhand
