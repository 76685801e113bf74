#pragma once

#include <cstdint>
#include <limits>

#include "core/rules/rule.h"

namespace longhand::rules {

/// Threshold relative attention: a softmax over the keys with positive scores. The score of such a
/// key is increased by `pull` (TraRule::count_bias) times the number of keys with positive scores
/// from this key to the query's own key, both included. The increased score is the key's logit.
struct Tra {
  static constexpr bool own_key = true, leftward = true, exact_scores = true;
  static constexpr float unit = per_bit;

  template <class V>
  static constexpr V logit(V s, V pull, V& count) {
    const V one = select(s > V(0.0), V(1.0), V(0.0));
    count = count + one;
    return select(s > V(0.0), s + pull * count, V(-std::numeric_limits<float>::infinity()));
  }
  /// Returns a bound that shows when all earlier keys of a row can be skipped: they have less than
  /// 2^-30 of the weight of a key with the logit L if
  ///   bound + pull (count + 1) < L, where count is the number of positive scores so far.
  /// Scores, logits and `pull` are multiplied by log2 e, so weights are powers of 2. There are at
  /// most `keys` earlier keys, and their scores are at most `highest`. If pull <= 0, their logits
  /// are at most highest + pull (count + 1), so
  ///   bound = highest + 30 + log2(keys), with log2(keys) rounded up.
  /// If pull > 0, their logits have no such upper bound, and the result is infinity.
  template <class V>
  static constexpr V bound(V highest, V pull, std::int64_t keys) {
    V all = 30;
    for (std::int64_t n = 1; n < keys; n *= 2) all += V(1);
    return pull > V(0) ? std::numeric_limits<V>::infinity() : highest + all;
  }
  /// Returns dS = P (dP - d), where d is dy . y of the row. If one key has the whole weight of its
  /// row, for example because no other key has a positive score, its dS must be exactly 0. The
  /// logit of such a key equals `log_sum`, the logarithm of the row's softmax denominator. The test
  /// for equality works only if `logit` and `log_sum` have the same float type, since otherwise
  /// rounding makes them differ.
  template <class V>
  static constexpr V gradient(V logit, V log_sum, V p, V dp, V d) {
    const V none(0.0);
    return select(logit * V(ln_of_2) == log_sum, none, p * (dp - d));
  }
};

}  // namespace longhand::rules
