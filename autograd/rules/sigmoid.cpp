#include <cmath>

#include "autograd/elementwise.h"
#include "autograd/operators.h"
#include "autograd/score_matrices.h"

namespace longhand {

/// P_ij = sigmoid(s_ij - ln n_i), where s_ij is the score of key j for query i, and n_i is the
/// number of keys that query i sees.
Var weigh(const SequenceScores& s, const SigmoidVars&) {
  const Var scores = s.scores();
  std::vector<double> logs;  // ln(number of visible keys) of each query; equal for all heads
  for (std::int64_t t = 0; t < s.at.queries; ++t) {
    const std::int64_t keys = s.at.keys - s.at.queries + t + 1, window = s.vars.window;
    logs.push_back(std::log(static_cast<double>(window > 0 ? std::min(keys, window) : keys)));
  }
  const Var p = activate(Activation::sigmoid, scores - constant(scores, {s.at.queries, 1}, logs));
  return where(s.seen(scores), p, number_like(scores, 0));
}

SigmoidGradient gradient_of(const SigmoidRule&, const Heads&, const Target&) { return {}; }

}  // namespace longhand
