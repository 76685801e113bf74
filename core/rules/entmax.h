#pragma once

#include <cstdint>

#include "core/rules/rule.h"

namespace longhand::rules {

/// Entmax with alpha = 1.5: P = max(x - t, 0)^2, where x is half of the score, and the threshold t
/// is such that the weights of a row sum to 1.
struct Entmax {
  static constexpr bool own_key = true, leftward = false, exact_scores = false;
  static constexpr float unit = 0.5f;  // x in the formulas is half of the score

  static constexpr int most_steps = 64;  // maximum number of Newton steps; 12 usually suffice

  /// Returns max(x - threshold, 0), the square root of the weight P. The gradient dS of the score
  /// is proportional to this square root.
  template <class V>
  static constexpr V weight(V x, V threshold) {
    const V above = x - threshold;
    return select(above > V(0.0), above, V(0.0));
  }
  /// Returns the result of one step of Newton's method towards t, the threshold for which the
  /// weights of a row sum to 1. The step starts from `threshold`, which must not exceed t. `sum`
  /// and `squares` are the sums over the row of w = max(x - threshold, 0) and of w^2. Apart from
  /// rounding errors, the result does not exceed t.
  template <class V>
  static constexpr V step(V threshold, V sum, V squares) {
    const V more = (squares - V(1.0)) / (sum + sum);
    return select(more > V(0.0), threshold + more, threshold);
  }
  /// Returns the threshold t for which the weights max(x - t, 0)^2 of a row of `count` numbers x
  /// sum to 1.
  template <class V>
  static constexpr V threshold(const V* x, std::int64_t count) {
    V top = x[0];
    for (std::int64_t j = 1; j < count; ++j) top = x[j] > top ? x[j] : top;
    V found = top - V(1);
    for (int i = 0; i < most_steps; ++i) {
      V sum = 0, squares = 0;
      for (std::int64_t j = 0; j < count; ++j) {
        const V w = weight(x[j], found);
        sum += w;
        squares += w * w;
      }
      const V next = step(found, sum, squares);
      if (!(next > found)) break;
      found = next;
    }
    return found;
  }
};

}  // namespace longhand::rules
