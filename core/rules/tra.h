#pragma once

#include <cstdint>
#include <limits>

#include "core/rules/rule.h"

namespace longhand::rules {

/// Threshold relative attention: a softmax over the keys with positive scores. The score of such a
/// key is increased by `pull` times the number of positive scores from this key to the query, both
/// included.
struct Tra {
  static constexpr bool own_key = true, leftward = true, exact_scores = true;
  static constexpr float unit = per_bit;

  template <class V>
  static constexpr V logit(V s, V pull, V& count) {
    const V one = select(s > V(0.0), V(1.0), V(0.0));
    count = count + one;
    return select(s > V(0.0), s + pull * count, V(-std::numeric_limits<float>::infinity()));
  }
  /// Returns a bound that shows when all earlier keys can be skipped. `highest` must be at least
  /// the score of each earlier key, and `keys` is their number. Let `count` be the number of
  /// positive scores so far. If pull <= 0, an earlier key with a positive score has at most the
  /// logit highest + pull (count + 1). All earlier keys together then have less than 2^-30 of a
  /// known weight if
  ///   highest + 30 + log2(keys) + pull (count + 1) < the logit of that weight
  /// The function returns highest + 30 + log2(keys), rounded up. All these numbers are to the base
  /// 2. If pull > 0, the logits of earlier keys have no such bound, so the function returns
  /// infinity.
  template <class V>
  static constexpr V bound(V highest, V pull, std::int64_t keys) {
    V all = 30;
    for (std::int64_t n = 1; n < keys; n *= 2) all += V(1);
    return pull > V(0) ? std::numeric_limits<V>::infinity() : highest + all;
  }
  /// Returns dS. If one key has the whole weight of its row, for example because no other key has a
  /// positive score, its dS must be exactly 0. The logit of such a key equals log_sum, the
  /// logarithm of the row's sum. This test requires that both have the same type, since otherwise
  /// rounding makes them differ.
  template <class V>
  static constexpr V gradient(V logit, V log_sum, V p, V dp, V d) {
    const V none(0.0);
    return select(logit * V(ln_of_2) == log_sum, none, p * (dp - d));
  }
};

}  // namespace longhand::rules
