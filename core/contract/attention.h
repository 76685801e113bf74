#pragma once

#include <string_view>
#include <variant>

#include "core/contract/scores.h"
#include "core/rules/entmax.h"
#include "core/rules/sigmoid.h"
#include "core/rules/softmax.h"
#include "core/rules/stick_breaking.h"
#include "core/rules/tra.h"

/// Causal attention: y_i = sum_j P_ij v_j. A rule computes the weights P from the scores s. q, k,
/// v, y, the saved heads and the gradients of heads share one type. All other tensors of scores and
/// rules have the corresponding master type (core/tensor.h).
namespace longhand {

/// The struct of a rule has the tensors that the rule reads, and the tensors that the forward pass
/// saves for the backward pass. The saved tensors may be empty if there is no backward pass.
///
/// Its function list(rule, visitor) names every tensor, for code that serves all rules alike:
/// checks, allocation and the selection of one head. It calls the visitor's
///   of_head(name, x)      x is an input, one number per head; may be empty
///   input(name, x)        x is an input, one number per query and head
///   saved(name, x)        x is saved: one number, or one vector, per query and head
///   residue(name, x)      x is saved for bf16 only: the rounding error of y
///   target(name, dx, x)   dx is the target of the gradient of the input x
/// The structs of the backward passes have the same function.

/// softmax: P_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(b)). The sink b receives a part of each row's
/// weight but has no value vector, so this part adds nothing to y.
struct SoftmaxRule {
  using Formulas = rules::Softmax;
  using Gradient = struct SoftmaxGradient;
  Tensor sink = {};             // b, [q.heads]; empty: the term exp(b) is 0
  Tensor log_denominator = {};  // [query tokens, q.heads]

  static void list(auto& rule, const auto& visitor) {
    visitor.of_head("sink", rule.sink);
    visitor.saved("log_denominator", rule.log_denominator);
  }
};

/// stick-breaking: P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)). A query sees only the
/// keys j < i.
struct StickBreakingRule {
  using Formulas = rules::Stick;
  using Gradient = struct StickBreakingGradient;
  Heads residue = {};  // bf16 only: the rounding error of y, sum_j P_ij v_j - y_i, rounded to bf16

  static void list(auto& rule, const auto& visitor) { visitor.residue("residue", rule.residue); }
};

/// tra: a softmax over the keys with a positive score,
///   P_ij = exp(l_ij) / sum_j exp(l_ij), where l_ij = s_ij + a_i n_ij
/// n_ij is the number of keys with a positive score at the positions j .. i. If no score of a row
/// is positive, all its weights are 0. The products q_i . k_j are always computed in f32, because
/// the sign of a score decides whether its key has any weight.
struct TraRule {
  using Formulas = rules::Tra;
  using Gradient = struct TraGradient;
  Tensor count_bias;            // a, [query tokens, q.heads]
  Tensor log_denominator = {};  // [query tokens, q.heads]; 0 if all weights of the row are 0
  Heads residue = {};           // see StickBreakingRule

  static void list(auto& rule, const auto& visitor) {
    visitor.input("pull", rule.count_bias);
    visitor.saved("log_denominator", rule.log_denominator);
    visitor.residue("residue", rule.residue);
  }
};

/// entmax: P_ij = [s_ij / 2 - t_i]_+^2, with t_i such that a row sums to 1
struct EntmaxRule {
  using Formulas = rules::Entmax;
  using Gradient = struct EntmaxGradient;
  Tensor threshold = {};  // t, [query tokens, q.heads]
  Heads root_mean = {};   // sum_j w_ij v_j / sum_j w_ij, where w_ij is the square root of P_ij

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("threshold", rule.threshold);
    visitor.saved("root_mean", rule.root_mean);
  }
};

/// sigmoid: P_ij = sigmoid(s_ij - ln n_i), where n_i is the number of keys that query i sees. The
/// weights of a row need not sum to 1. Nothing is saved.
struct SigmoidRule {
  using Formulas = rules::Sigmoid;
  using Gradient = struct SigmoidGradient;

  static void list(auto&, const auto&) {}
};

using AttentionRule =
    std::variant<SoftmaxRule, StickBreakingRule, TraRule, EntmaxRule, SigmoidRule>;

/// y_i = sum_j P_ij v_j. y and all saved heads have q.heads heads of v.width.
struct Attention {
  static constexpr std::string_view name = "attention";
  Scores scores;
  AttentionRule rule;
  Heads v;
  Heads y;
};

/// Each struct below describes the backward pass of one rule: the tensors that it reads, including
/// those saved by the forward pass, and the targets for the gradients of the rule's own tensors. In
/// the formulas,
///   dP_ij = dy_i . v_j

/// D_i = dy_i . y_i;  dS_ij = P_ij (dP_ij - D_i);  db = -sum_i exp(b - log_denominator_i) D_i
/// P_ij is exp(s_ij - log_denominator_i). Row i of dS sums to exp(b - log_denominator_i) D_i, which
/// is 0 without a sink.
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

/// D_i = dy_i . (y_i + residue_i);  dS_ij = P_ij dP_ij - sigmoid(s_ij) sum_(m<=j) P_im dP_im The
/// sum over m <= j is computed as D_i minus the terms P_im dP_im of the later keys. The difference
/// is accurate only if D_i is the sum of exactly these terms. If the products for dP round dy to
/// bf16, D_i is therefore computed from the rounded dy as well.
struct StickBreakingGradient {
  Heads y;
  Heads residue = {};

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("y", rule.y);
    visitor.residue("residue", rule.residue);
  }
};

/// D_i = dy_i . (y_i + residue_i);  dS_ij = P_ij (dP_ij - D_i);  da_i = sum_j dS_ij n_ij
/// Often one key has nearly all of the weight. Its dP - D is then much smaller than D, so D must
/// include the rounding error of y.
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

/// D_i = dy_i . root_mean_i;  dS_ij = w_ij (dP_ij - D_i)
struct EntmaxGradient {
  Tensor threshold;
  Heads root_mean;

  static void list(auto& rule, const auto& visitor) {
    visitor.saved("threshold", rule.threshold);
    visitor.saved("root_mean", rule.root_mean);
  }
};

/// dS_ij = P_ij (1 - P_ij) dP_ij
struct SigmoidGradient {
  static void list(auto&, const auto&) {}
};

using AttentionGradient = std::variant<SoftmaxGradient, StickBreakingGradient, TraGradient,
                                       EntmaxGradient, SigmoidGradient>;

/// Computes the gradients of q, k and v from the rule's dS. With tau_i and scale as in Scores,
///   dq_i = tau_i scale sum_j dS_ij k_j;  dk_j = scale sum_i tau_i dS_ij q_i
///   dv_j = sum_i P_ij dy_i
/// With grouped keys, dk_j and dv_j are also summed over the query heads that read the key head.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  Scores scores;
  AttentionGradient rule;
  Heads v, dy;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
};

/// Stores the matrix P itself, for inspection. `weights` contains one block [q.heads, queries,
/// keys] per segment, with zeros where a query does not see a key. It has weights_size() entries of
/// the master type. The tensors that a rule saves for a backward pass are not filled.
struct AttentionWeights {
  static constexpr std::string_view name = "attention_weights";
  Scores scores;
  AttentionRule rule;
  Tensor weights;
};
std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads);

/// Finds the first visible score that is NaN or infinite, and stores its (segment, query position,
/// key position, head) in `found`, i32 [4]. "First" refers to the order of these four numbers. If
/// every visible score is finite, all four are -1.
struct FindBadScore {
  static constexpr std::string_view name = "find_bad_score";
  Scores scores;
  bool own_key = true;  // false: a query does not see the key at its own position
  Tensor found;
};

void check(const Attention& op);
void check(const AttentionBackward& op);
void check(const AttentionWeights& op);
void check(const FindBadScore& op);

}  // namespace longhand
