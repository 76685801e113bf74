#pragma once

#include <cmath>

#include "core/rules/rule.h"

namespace longhand::rules {

/// Stick-breaking: each row has the weight 1 to distribute. From the nearest key to the first, each
/// key receives the share sigmoid(s) of the weight that is left, where s is the score of the key.
struct Stick {
  static constexpr bool own_key = false, leftward = true, exact_scores = false;
  static constexpr float unit = per_bit;

  /// A row is finished when the weight that is left is below this limit. The remaining keys of the
  /// row together then have a weight below 2^-30. This is small compared with the rounding error of
  /// an f32 number near 1, which is up to 2^-24.
  static constexpr float spent = 0x1p-30f;

  /// How a key with the score s divides the weight that is left. The key receives the share
  /// `taken` = sigmoid(s), and the share `kept` = 1 - sigmoid(s) remains for earlier keys. Both
  /// numbers have full relative precision.
  template <class V>
  struct Broken {
    V taken, kept;
  };
  template <class V>
  static constexpr Broken<V> broken(V s) {
    using std::exp2;
    const V odds = exp2(select(s < V(-126.0), V(126.0), -s));
    const V taken = V(1.0) / (V(1.0) + odds);
    return {taken, odds * taken};
  }
  template <class V>
  static constexpr V weigh(const Broken<V>& b, V& left) {
    const V p = b.taken * left;
    left = b.kept * left;
    return p;
  }
  template <class V>
  static constexpr V weigh(V s, V& left) {
    return weigh(broken(s), left);
  }
  /// Returns the gradient dS = p dP - taken * rest of one key's score. Here p is the key's weight,
  /// `taken` is the sigmoid of the score, and `rest` is the sum of p dP over this key and all
  /// earlier keys. The first call is for the nearest key. Before it, `rest` is dy . y, which is the
  /// sum of p dP over all keys. Each call subtracts the term p dP of its key from `rest`. For
  /// `rest` to stay accurate, p must be exactly the number by which v was multiplied to compute y:
  /// if that product rounds its operands, p must be the rounded weight.
  template <class V>
  static constexpr V gradient(V taken, V p, V dp, V& rest) {
    const V part = p * dp, ds = part - taken * rest;
    rest = rest - part;
    return ds;
  }
};

}  // namespace longhand::rules
