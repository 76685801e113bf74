#pragma once

#include "core/rules/rule.h"

namespace longhand::rules {

/// Sigmoid attention: P = sigmoid(s - ln n), where s is the score of the key and n is the number of
/// keys that the query sees. Each weight depends on its own score only, so the weights of a row
/// need not sum to 1.
struct Sigmoid {
  static constexpr bool own_key = true, leftward = false, exact_scores = false;
  static constexpr float unit = per_bit;

  /// The weight P for x = (s - ln n) / ln 2, where s is the score and n is the number of keys that
  /// the query sees.
  template <class V>
  static constexpr V weight(V x) {
    using std::exp2;
    return V(1.0) / (V(1.0) + exp2(select(x < V(-126.0), V(126.0), -x)));
  }
  template <class V>
  static constexpr V gradient(V p, V dp) {
    return p * (V(1.0) - p) * dp;
  }
};

}  // namespace longhand::rules
