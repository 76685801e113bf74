#pragma once

#include <cmath>

#include "core/rules/rule.h"

namespace longhand::rules {

/// Stick-breaking: each row has the weight 1 to distribute. From the nearest key to the first, each
/// key receives the share sigmoid(s) of the weight that is left.
struct Stick {
  static constexpr bool own_key = false, leftward = true, exact_scores = false;
  static constexpr float unit = per_bit;

  /// A row is finished when the weight that is left is below this limit: the remaining keys of the
  /// row together then have a weight below 2^-30. This is small compared with the rounding error of
  /// an f32 number near 1, which is up to 2^-24.
  static constexpr float spent = 0x1p-30f;

  /// taken = sigmoid(s) and kept = 1 - sigmoid(s), both with full relative precision.
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
  /// Returns dS. `rest` is the sum of P dP over this key and all earlier keys. For the nearest key,
  /// it is D = dy . y, and each call subtracts its own term. The rest is accurate only if the terms
  /// are exactly those that are summed in D. Therefore p must be the number by which v was
  /// multiplied to compute y. If the product with v rounds its operands, this is the rounded P.
  template <class V>
  static constexpr V gradient(V taken, V p, V dp, V& rest) {
    const V part = p * dp, ds = part - taken * rest;
    rest = rest - part;
    return ds;
  }
};

}  // namespace longhand::rules
