#include "autograd/operators.h"
#include "autograd/score_matrices.h"
#include "autograd/softmax.h"

namespace longhand {
namespace {

/// Threshold relative attention: a softmax over the keys with positive scores. To the score of key
/// j, it adds `pull` (one factor per query and head) times the number of positive scores from j up
/// to the query. The backward pass treats this number, and the set of keys with positive scores, as
/// constants.
Var positive_alone(const Var& scores, const Var& seen, const Var& pull) {
  const std::int64_t keys = scores.shape()[2];
  std::vector<double> kept = scores.value().to_doubles(), counts(kept.size(), 0.0);
  const std::vector<double> sees = seen.value().to_doubles();
  // A row without positive scores keeps its first key, so that its softmax is defined.
  std::vector<double> read = kept;
  for (std::size_t row = 0; row < kept.size(); row += static_cast<std::size_t>(keys)) {
    double count = 0;
    for (std::size_t j = row + static_cast<std::size_t>(keys); j-- > row;) {
      kept[j] = kept[j] > 0 && sees[j % sees.size()] > 0 ? 1 : 0;
      counts[j] = count += kept[j];
      read[j] = kept[j];
    }
    if (count == 0) read[row] = 1;
  }
  const Var of_kept = constant(scores, scores.shape(), kept);
  const Var logits = scores + pull * constant(scores, scores.shape(), counts);
  const Var hidden = number_like(scores, -std::numeric_limits<double>::infinity());
  return of_kept * softmax(where(constant(scores, scores.shape(), read), logits, hidden));
}

}  // namespace

Var weigh(const SequenceScores& s, const TraVars& rule) {
  const Var scores = s.scores(Math::exact);
  return positive_alone(scores, s.seen(scores), s.by_query(rule.count_bias));
}

TraGradient gradient_of(const TraRule& rule, const Heads& y, const Target& dcount_bias) {
  return {.count_bias = rule.count_bias,
          .y = y,
          .residue = rule.residue,
          .log_denominator = rule.log_denominator,
          .dcount_bias = dcount_bias};
}

}  // namespace longhand
