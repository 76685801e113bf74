#pragma once

#include <string_view>
#include <variant>

#include "core/contract/scores.h"
#include "core/rules/entmax.h"
#include "core/rules/sigmoid.h"
#include "core/rules/softmax.h"
#include "core/rules/stick_breaking.h"
#include "core/rules/tra.h"

/// Attention: y_i = sum_j P_ij v_j over the keys j that query i sees. An attention rule, such as
/// softmax, computes the weights P from the scores s. All arguments of type Heads (q, k, v, y,
/// saved heads and gradients) share one element type. All members of type Tensor in scores and
/// rules have the master type: f64 if the heads are f64, otherwise f32.
namespace longhand {

/// A rule computes attention weights from scores. The struct of a rule contains the tensors that
/// the rule reads, and the tensors that the forward pass saves for the backward pass. The saved
/// tensors may be empty if no backward pass follows.
///
/// The struct's function list(rule, visitor) passes every tensor to the visitor. Code that treats
/// all rules alike uses it, for example to check or to allocate their tensors. For each tensor,
/// list() calls one of these functions of the visitor:
///   of_head(name, x)      if x is an input with one number per head (x may be empty);
///   input(name, x)        if x is an input with one number per query and head;
///   saved(name, x)        if x is saved and has one number or one vector per query and head;
///   residue(name, x)      if x is the rounding error of y, which is saved for bf16 only;
///   target(name, dx, x)   if dx is the target of the gradient of the input x.
/// The structs of the backward passes, such as SoftmaxGradient, also have a function list().

/// softmax: P_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(b)), where s are the scores and b is the
/// head's sink. The sink receives a part of each row's weight but has no value vector, so this part
/// adds nothing to y.
struct SoftmaxRule {
  using Formulas = rules::Softmax;
  using Gradient = struct SoftmaxGradient;
  Tensor sink = {};             // [q.heads]; empty: no sink
  Tensor log_denominator = {};  // [query tokens, q.heads], the logarithm of P's denominator

  static void list(auto& rule, const auto& visitor) {
    visitor.of_head("sink", rule.sink);
    visitor.saved("log_denominator", rule.log_denominator);
  }
};

/// stick-breaking: P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)), where s are the scores.
/// Query i sees only the earlier keys, j < i.
struct StickBreakingRule {
  using Formulas = rules::Stick;
  using Gradient = struct StickBreakingGradient;
  /// The rounding error of the output y: sum_j P_ij v_j - y_i. It is saved only if y is bf16, and
  /// its own type is bf16, too.
  Heads residue = {};

  static void list(auto& rule, const auto& visitor) { visitor.residue("residue", rule.residue); }
};

/// tra (threshold relative attention): a softmax over the keys with a positive score s_ij,
///   P_ij = exp(l_ij) / sum_j exp(l_ij), where l_ij = s_ij + a_i n_ij.
/// a_i is the query's `count_bias`, and n_ij is the number of keys with a positive score at the
/// positions j .. i. If no score of a row is positive, all weights of the row are 0. The products
/// q_i . k_j are computed in f32 in every math mode, because the sign of a score decides whether
/// its key has any weight.
struct TraRule {
  using Formulas = rules::Tra;
  using Gradient = struct TraGradient;
  Tensor count_bias;            // [query tokens, q.heads], multiplies the count of positive scores
  Tensor log_denominator = {};  // [query tokens, q.heads]; 0 for a row whose weights are all 0
  Heads residue = {};           // the rounding error of y, saved only if y is bf16

  static void list(auto& rule, const auto& visitor) {
    visitor.input("pull", rule.count_bias);
    visitor.saved("log_denominator", rule.log_denominator);
    visitor.residue("residue", rule.residue);
  }
};

/// entmax with alpha = 1.5: P_ij = max(0, s_ij / 2 - t_i)^2, where s are the scores. The threshold
/// t_i is such that the weights of query i sum to 1.
struct EntmaxRule {
  using Formulas = rules::Entmax;
  using Gradient = struct EntmaxGradient;
  Tensor threshold = {};  // [query tokens, q.heads], subtracted from half of each score
  Heads root_mean = {};   // for each query i: mean of the v_j, weighted by the square root of P_ij

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("threshold", rule.threshold);
    visitor.saved("root_mean", rule.root_mean);
  }
};

/// sigmoid: P_ij = sigmoid(s_ij - ln n_i), where s are the scores and n_i is the number of keys
/// that query i sees. The weights of a query need not sum to 1. Nothing is saved for the backward
/// pass.
struct SigmoidRule {
  using Formulas = rules::Sigmoid;
  using Gradient = struct SigmoidGradient;

  static void list(auto&, const auto&) {}
};

using AttentionRule =
    std::variant<SoftmaxRule, StickBreakingRule, TraRule, EntmaxRule, SigmoidRule>;

/// y_i = sum_j P_ij v_j, where `rule` computes the weights P from the scores. y and all Heads that
/// the rule saves for the backward pass have q.heads heads of width v.width.
struct Attention {
  static constexpr std::string_view name = "attention";
  Scores scores;
  AttentionRule rule;
  Heads v;
  Heads y;
};

/// Each struct below describes the backward pass of one attention rule. The struct contains the
/// tensors that this pass reads, including those saved by the forward pass, and the targets for the
/// gradients of the rule's own inputs, such as the sink. In the formulas, dP_ij = dy_i . v_j is the
/// gradient of the weight P_ij.

/// The backward pass of softmax with the sink b and dP_ij = dy_i . v_j:
///   D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);  db = -sum_i exp(b - log_denominator_i) D_i.
/// log_denominator_i, the logarithm of the denominator of row i, is saved by the forward pass. P_ij
/// is computed again from the score s_ij as exp(s_ij - log_denominator_i). Row i of dS sums to
/// exp(b - log_denominator_i) D_i, which is 0 without a sink.
struct SoftmaxGradient {
  Tensor sink = {};
  Heads y;
  Tensor log_denominator;
  Target dsink = {};

  static void list(auto& rule, const auto& visitor) {
    visitor.of_head("sink", rule.sink);
    visitor.saved("y", rule.y);
    visitor.saved("log_denominator", rule.log_denominator);
    visitor.target("dsink", rule.dsink, rule.sink);
  }
};

/// The backward pass of stick-breaking with scores s. Let dP_ij = dy_i . v_j. The sum of P_im dP_im
/// over all keys m is D_i = dy_i . (y_i + residue_i), where residue_i is the rounding error of y_i.
/// Then
///   dS_ij = P_ij dP_ij - sigmoid(s_ij) sum_(m<=j) P_im dP_im.
/// The sum over m <= j is computed as D_i minus the terms of the later keys m > j. The difference
/// is accurate only if D_i includes exactly the terms that are subtracted. If the products for dP
/// round dy to bf16, D_i is therefore computed from the rounded dy as well.
struct StickBreakingGradient {
  Heads y;
  Heads residue = {};

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("y", rule.y);
    visitor.residue("residue", rule.residue);
  }
};

/// The backward pass of TraRule, which adds a_i n_ij to each positive score s_ij. a_i is the
/// query's `count_bias`, and n_ij is the number of positive scores from key j to query i. With
/// dP_ij = dy_i . v_j and residue_i, the rounding error of y_i,
///   D_i = dy_i . (y_i + residue_i);  dS_ij = P_ij (dP_ij - D_i);  da_i = sum_j dS_ij n_ij.
/// Often one key has nearly all of a row's weight. The difference dP_ij - D_i of this key is much
/// smaller than D_i, so D_i must include the rounding error of y_i.
struct TraGradient {
  Tensor count_bias;
  Heads y;
  Heads residue = {};
  Tensor log_denominator;
  Target dcount_bias = {};

  static void list(auto& rule, const auto& visitor) {
    visitor.input("pull", rule.count_bias);
    visitor.saved("y", rule.y);
    visitor.residue("residue", rule.residue);
    visitor.saved("log_denominator", rule.log_denominator);
    visitor.target("dpull", rule.dcount_bias, rule.count_bias);
  }
};

/// The backward pass of entmax. Let w_ij be the square root of P_ij. The forward pass has saved
/// root_mean_i, the mean of the values v_j weighted by w_ij. With dP_ij = dy_i . v_j,
///   D_i = dy_i . root_mean_i;  dS_ij = w_ij (dP_ij - D_i)
struct EntmaxGradient {
  Tensor threshold;
  Heads root_mean;

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("threshold", rule.threshold);
    visitor.saved("root_mean", rule.root_mean);
  }
};

/// The backward pass of sigmoid: dS_ij = P_ij (1 - P_ij) dP_ij, where dP_ij = dy_i . v_j.
struct SigmoidGradient {
  static void list(auto&, const auto&) {}
};

using AttentionGradient = std::variant<SoftmaxGradient, StickBreakingGradient, TraGradient,
                                       EntmaxGradient, SigmoidGradient>;

/// Computes the gradients of q, k and v. `rule` computes P, the weights, and dS, the gradients of
/// the scores. A score contains q_i . k_j multiplied by `scale` and by tau_i, the query's entry of
/// Scores::multiplier.
///   dq_i = tau_i scale sum_j dS_ij k_j;  dk_j = scale sum_i tau_i dS_ij q_i;
///   dv_j = sum_i P_ij dy_i.
/// If several query heads read one key head, dk_j and dv_j are also summed over these query heads.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  Scores scores;
  AttentionGradient rule;
  Heads v, dy;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
};

/// Stores the attention weights, for inspection. `weights` contains one block [q.heads, queries,
/// keys] per segment, with zeros where a query does not see a key. `weights` has weights_size()
/// entries, which are f64 if q is f64, otherwise f32. The tensors that the rule saves for a
/// backward pass are not filled.
struct AttentionWeights {
  static constexpr std::string_view name = "attention_weights";
  Scores scores;
  AttentionRule rule;
  Tensor weights;
};
std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads);

/// Finds the first score that is NaN or infinite. Scores of keys that the query does not see are
/// ignored. `found`, i32 [4], receives the segment, query position, key position and head of the
/// score. Without a causal mask, the second number is the query's index in its segment. Scores are
/// ordered by these four numbers, the segment first. If all scores are finite, the four numbers are
/// -1.
struct FindBadScore {
  static constexpr std::string_view name = "find_bad_score";
  Scores scores;
  bool own_key = true;  // false: a query does not see the key at its own position (causal only)
  Tensor found;
};

void check(const Attention& op);
void check(const AttentionBackward& op);
void check(const AttentionWeights& op);
void check(const FindBadScore& op);

}  // namespace longhand
