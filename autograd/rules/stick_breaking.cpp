#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/score_matrices.h"

namespace longhand {
namespace {

/// The stick-breaking weights P of the scores s, computed with logarithms:
///   ln P_ij = ln sigmoid(s_ij) + sum over j < m < i of ln(1 - sigmoid(s_im)).
/// `seen` is 1 if a query sees a key. Both logarithms are computed from l = ln sigmoid(|s|), which
/// does not overflow for any score:
///   ln sigmoid(s) = min(s, 0) + l;  ln(1 - sigmoid(s)) = l - max(s, 0).
Var broken_sticks(const Var& scores, const Var& seen) {
  const std::int64_t keys = scores.shape()[2];
  const Var none = number_like(scores, 0);
  const Var s = where(seen, scores, none);
  // `positive` is 1 if the score is >= 0, otherwise 0. `signs` is 1 if the score is >= 0, otherwise
  // -1. The backward pass treats both arrays as constants.
  std::vector<double> positive = s.value().to_doubles(), signs;
  for (double& x : positive) {
    x = x >= 0 ? 1 : 0;
    signs.push_back(2 * x - 1);
  }
  const Var highest = s * constant(s, s.shape(), positive), lowest = s - highest;
  const Var size = s * constant(s, s.shape(), signs);
  const Var l = activate(Activation::log, activate(Activation::sigmoid, size));
  std::vector<double> later;  // [keys, keys]: entry (m, j) is 1 if m > j, otherwise 0
  for (std::int64_t m = 0; m < keys; ++m) {
    for (std::int64_t j = 0; j < keys; ++j) later.push_back(m > j ? 1.0 : 0.0);
  }
  const Var left = where(seen, l - highest, none);
  const Var rows = reshape(left, {s.shape()[0] * s.shape()[1], keys});
  const Var sums = matmul(rows, constant(s, {keys, keys}, later), {.math = Math::exact});
  return where(seen, activate(Activation::exp, lowest + l + reshape(sums, s.shape())), none);
}

}  // namespace

Var weigh(const SequenceScores& s, const StickBreakingVars&) {
  const Var scores = s.scores();
  return broken_sticks(scores, s.seen(scores, StickBreakingRule::Formulas::own_key));
}

StickBreakingGradient gradient_of(const StickBreakingRule& rule, const Heads& y, const Target&) {
  return {.y = y, .residue = rule.residue};
}

}  // namespace longhand
