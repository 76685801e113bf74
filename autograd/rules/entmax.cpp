#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/reduce.h"
#include "autograd/score_matrices.h"

namespace longhand {
namespace {

/// Entmax in closed form: P_ij = max(x_ij - t_i, 0)^2, where x_ij is half the score and t_i is the
/// threshold of query i. Backward treats the set of keys with a positive weight as a constant. Let
/// k be the number of these keys, m the mean of their x, and u the mean of their (x - m)^2. Then
///   t_i = m - sqrt(1 / k - u).
Var thresholded(const Var& scores, const Var& seen) {
  const std::int64_t keys = scores.shape()[2];
  const std::vector<double> sees = seen.value().to_doubles();
  std::vector<double> x = scores.value().to_doubles(), kept(x.size(), 0.0), counts;
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(keys)) {
    std::vector<double> visible;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j) {
      if (sees[j % sees.size()] > 0) visible.push_back(x[j] /= 2);
    }
    const double t = rules::Entmax::threshold(visible.data(), std::ssize(visible));
    double count = 0;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j) {
      kept[j] = sees[j % sees.size()] > 0 && x[j] > t ? 1 : 0;
      count += kept[j];
    }
    counts.push_back(count);
  }
  const Shape column{scores.shape()[0], scores.shape()[1], 1};
  const Var of_kept = constant(scores, scores.shape(), kept), k = constant(scores, column, counts);
  const auto mean_of = [&](const Var& values) {
    return reshape(sum(of_kept * values, -1), column) / k;
  };
  const Var half = scale(scores, 0.5), mean = mean_of(half), far = half - mean;
  const Var inner = 1.0 / k - mean_of(far * far);
  const Var root = activate(Activation::exp, scale(activate(Activation::log, inner), 0.5));
  return of_kept * activate(Activation::square, far + root);
}

}  // namespace

Var weigh(const SequenceScores& s, const EntmaxVars&) {
  const Var scores = s.scores();
  return thresholded(scores, s.seen(scores));
}

EntmaxGradient gradient_of(const EntmaxRule& rule, const Heads&, const Target&) {
  return {.threshold = rule.threshold, .root_mean = rule.root_mean};
}

}  // namespace longhand
