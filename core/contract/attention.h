#pragma once

#include <string_view>
#include <variant>

#include "core/contract/scores.h"

/// Causal attention: y_i = sum_j P_ij v_j. A rule computes the weights P from the scores s. q, k,
/// v, y and their gradients share one type. Saved heads have this type too. All other tensors of
/// scores and rules have its master type.
namespace longhand {

/// Each rule has members for the tensors that it reads and for those that its backward pass needs.
/// The forward pass fills the tensors for the backward pass. If there is no backward pass, they may
/// be empty.

/// softmax: P_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(b)). The sink b has no value vector: it takes
/// a share of each row's weight, which then adds nothing to y.
struct SoftmaxRule {
  Tensor sink = {};             // b, [q.heads]; empty: no exp(b)
  Tensor log_denominator = {};  // [query tokens, q.heads]
};

/// stick-breaking: P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)). A query sees only the
/// keys j < i.
struct StickBreakingRule {
  Heads residue = {};  // bf16 only: the rounding error sum_j P_ij v_j - y_i, rounded to bf16
};

/// tra: a softmax over the keys with a positive score,
///   P_ij = exp(l_ij) / sum_j exp(l_ij), where l_ij = s_ij + a_i n_ij
/// n_ij is the number of keys with a positive score at the positions j .. i. If no score of a row
/// is positive, all its weights are 0. Scores always use f32 products, because their sign decides
/// which keys have weight.
struct TraRule {
  Tensor count_bias;            // a, [query tokens, q.heads]
  Tensor log_denominator = {};  // [query tokens, q.heads]; 0 for a row of zeros
};

/// entmax: P_ij = [s_ij / 2 - t_i]_+^2, with t_i such that a row sums to 1
struct EntmaxRule {
  Tensor threshold = {};  // t, [query tokens, q.heads]
  Heads root_mean = {};   // sum_j w_ij v_j / sum_j w_ij, where w_ij is the square root of P_ij
};

using AttentionRule = std::variant<SoftmaxRule, StickBreakingRule, TraRule, EntmaxRule>;

/// y_i = sum_j P_ij v_j. y and all saved heads have q.heads heads of v.width.
struct Attention {
  static constexpr std::string_view name = "attention";
  Scores scores;
  AttentionRule rule;
  Heads v;
  Heads y;
};

/// The structs below describe the backward pass of each rule. They contain its inputs, including
/// what the forward pass saved, and the targets for the gradients of the rule's own tensors. In
/// their formulas,
///   dP_ij = dy_i . v_j

/// D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);  db = -sum_i exp(b - log_denominator_i) D_i
/// P is computed from log_denominator. The row sum of dS is exp(b - log_denominator_i) D_i, which
/// is 0 without a sink.
struct SoftmaxGradient {
  Tensor sink = {};
  Heads y;
  Tensor log_denominator;
  Target dsink = {};
};

/// D_i = dy_i . (y_i + residue_i);  dS_ij = P_ij dP_ij - sigmoid(s_ij) sum_(m<=j) P_im dP_im
/// The sum is computed as D_i minus the terms of later keys, so an error of D_i affects all earlier
/// keys. Products that round their operands therefore round dy in D_i too.
struct StickBreakingGradient {
  Heads y;
  Heads residue = {};
};

/// D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);  da_i = sum_j dS_ij n_ij
struct TraGradient {
  Tensor count_bias;
  Heads y;
  Tensor log_denominator;
  Target dcount_bias = {};
};

/// D_i = dy_i . root_mean_i;  dS_ij = w_ij (dP_ij - D_i)
struct EntmaxGradient {
  Tensor threshold;
  Heads root_mean;
};

using AttentionGradient =
    std::variant<SoftmaxGradient, StickBreakingGradient, TraGradient, EntmaxGradient>;

/// Computes the gradients of q, k and v from the rule's dS:
///   dq_i = tau_i scale sum_j dS_ij k_j;  dk_j = scale sum_i tau_i dS_ij q_i
///   dv_j = sum_i P_ij dy_i
/// dk_j and dv_j also sum over the query heads that read head h / G.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  Scores scores;
  AttentionGradient rule;
  Heads v, dy;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
};

/// The matrix P itself, for inspection: segment after segment, each as [q.heads, queries, keys],
/// with zeros where a query does not see a key. It has weights_size() entries of the master type.
/// The rule saves nothing.
struct AttentionWeights {
  static constexpr std::string_view name = "attention_weights";
  Scores scores;
  AttentionRule rule;
  Tensor weights;
};
std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads);

/// Finds the first visible score that is NaN or infinite, in the order (segment, query position,
/// key position, head), and stores these four numbers in found, or -1 four times if there is none.
/// i32 [4]
struct FindBadScore {
  static constexpr std::string_view name = "find_bad_score";
  Scores scores;
  bool own_key = true;  // false: a query sees only the keys before its own
  Tensor found;
};

void check(const Attention& op);
void check(const AttentionBackward& op);
void check(const AttentionWeights& op);
void check(const FindBadScore& op);

}  // namespace longhand
