#pragma once

#include <optional>
#include <string_view>

#include "core/contract/heads.h"
#include "core/math_mode.h"
#include "core/rules.h"

/// Causal attention, by softmax or another rule. q, k, v, y and their gradients share one type;
/// log_sum, weights and the other tensors of scores have its master type. Products follow `math`
/// (none: the backend's setting); sums, exponentials and log_sum use the master type.
namespace longhand {

/// The tensors that determine P. For query i at position p and key j of its segment (j <= p, and
/// with a window > 0 also j > p - window), both of head h (see Heads):
///   s_ij = tau_i scale q_i . k_j + c_i - c_j;   P_ij = exp(s_ij) / (sum_j exp(s_ij) + exp(b))
/// where c_i belongs to the key at the query's own position, and b = sink_h takes a share of each
/// row but has no value. A missing tensor leaves its part of the formula out.
///
/// Rules other than softmax have no sink and compute another P from the same scores (core/rules.h):
///   stick   P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)), for j < i only
///   tra     P_ij = exp(l_ij) / sum_j exp(l_ij), l_ij = s_ij + pull_i n_ij, over the keys with
///           s_ij > 0, of which n_ij are in j .. i; a row of zeros if there are none. Scores
///           always use f32 products, because their sign is a decision.
///   entmax  P_ij = [s_ij / 2 - t_i]_+^2, t_i such that a row sums to 1
struct Scores {
  Heads q, k;
  Segments queries, keys;
  double scale = 1;
  Tensor tau = {};    // [query tokens, q.heads]
  Tensor shift = {};  // c, [rows of k, q.heads]
  Tensor sink = {};   // b, [q.heads]
  std::int64_t window = 0;
  std::optional<Math> math = {};
  Rule rule = Rule::softmax;
  Tensor pull = {};  // [query tokens, q.heads], only for tra
};

/// y_i = sum_j P_ij v_j. Saves log_sum_i, the log of P_ij's denominator, [query tokens, q.heads]; 0
/// for a row of zeros. It may be empty if no backward follows, and stick has none. For entmax,
/// log_sum_i is t_i, and mean_i = sum_j w_ij v_j / sum_j w_ij is saved too, where w_ij is the
/// square root of P_ij. For stick in bf16, `residue` is what rounding took from y: the sum minus y,
/// rounded to bf16. y, mean and residue have q.heads heads of v.width.
struct Attention {
  static constexpr std::string_view name = "attention";
  Scores scores;
  Heads v;
  Heads y;
  Tensor log_sum = {};
  Heads mean = {}, residue = {};
};

/// The targets of the gradients of tau, shift, sink and pull, each only if the scores have that
/// tensor.
struct ScoreTargets {
  Target tau = {}, shift = {}, sink = {}, pull = {};
};

/// With D_i = dy_i . y_i and P from log_sum:
///   dP_ij = dy_i . v_j;  dS_ij = P_ij (dP_ij - D_i);  r_i = scale sum_j dS_ij k_j
///   dq_i = tau_i r_i;  dk_j = scale sum_i tau_i dS_ij q_i;  dv_j = sum_i P_ij dy_i
///   dtau_i = q_i . r_i;  dc_j = sum_k dS_jk - sum_i dS_ij;  db = -sum_i exp(b - log_sum_i) D_i
/// dk_j and dv_j also sum over the query heads that read head h / G. The row sum of dS is exp(b -
/// log_sum_i) D_i, which is 0 without a sink. tra has dpull_i = sum_j dS_ij n_ij. stick, whose rows
/// of dS do not sum to 0, has
///   dS_ij = P_ij dP_ij - sigmoid(s_ij) sum_(m<=j) P_im dP_im
/// where the sum is D_i minus what later keys have. There D_i = dy_i . (y_i + residue_i) if residue
/// was saved, and products that round their operands round dy in D too: an error of D reaches every
/// key far back. entmax reads `mean` as y, so that D_i = dy_i . mean_i, and has
///   dS_ij = w_ij (dP_ij - D_i)
/// dc is made of the sums of the same numbers dS by rows and by columns, under every rule, so that
/// over a sequence it sums to 0 however dS was rounded.
struct AttentionBackward {
  static constexpr std::string_view name = "attention_backward";
  Scores scores;
  Heads v, y, dy;
  Tensor log_sum;
  HeadsTarget dq = {}, dk = {}, dv = {};
  ScoreTargets dscores = {};
  Heads residue = {};
};

/// The matrix P itself, for inspection: segment after segment, each as [q.heads, queries, keys],
/// with zeros where a query does not see a key. It has weights_size() entries of the master type.
struct AttentionWeights {
  static constexpr std::string_view name = "attention_weights";
  Scores scores;
  Tensor weights;
};
std::int64_t weights_size(const Segments& queries, const Segments& keys, std::int64_t heads);

/// Finds the first visible score that is NaN or infinite, in the order (segment, query position,
/// key position, head), and stores these four numbers in found, or -1 four times if there is none.
/// i32 [4]
struct FindBadScore {
  static constexpr std::string_view name = "find_bad_score";
  Scores scores;
  Tensor found;
};

void check(const Attention& op);
void check(const AttentionBackward& op);
void check(const AttentionWeights& op);
void check(const FindBadScore& op);

}  // namespace longhand
