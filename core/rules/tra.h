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
  /// Returns a bound that shows when all earlier keys can be skipped. No earlier score may exceed
  /// `highest`. If `count` keys had positive scores so far, each earlier weight is at most
  /// 2^(highest + pull (count + 1)), before normalization.
  /// All earlier keys together therefore have at most `keys` times this weight. The function
  /// returns highest + 30 + log2(keys), rounded up. If this number + pull (count + 1) is below the
  /// base 2 logarithm of some weight, all earlier keys together have less than 2^-30 of that
  /// weight. If pull > 0, earlier weights can exceed later ones, so the function returns infinity.
  template <class V>
  static constexpr V bound(V highest, V pull, std::int64_t keys) {
    V all = 30;
    for (std::int64_t n = 1; n < keys; n *= 2) all += V(1);
    return pull > V(0) ? std::numeric_limits<V>::infinity() : highest + all;
  }
  /// Returns dS. If one key has the whole weight of its row, for example because no other key has a
  /// positive score, its dS must be exactly 0. Such a key is recognized by its logit. If logit
  /// and log_sum have the same type, the key's logit has the bits of the row's log_sum.
  template <class V>
  static constexpr V gradient(V logit, V log_sum, V p, V dp, V d) {
    const V none(0.0);
    return select(logit * V(ln_of_2) == log_sum, none, p * (dp - d));
  }
};

}  // namespace longhand::rules
