#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "core/formulas.h"

/// The attention rules, which compute the weights of the keys from the scores of a query:
/// docs/math/rules.md. Softmax is built into the kernels. Every other rule is defined once, here,
/// as a struct of templates on the value type. The same code runs on double (the reference
/// backend), on float (CUDA) and on vectors of queries (the CPU backend), whose exp2, min and
/// select are found by argument-dependent lookup.
///
/// Stick-breaking and TRA process the keys of a query from the nearest to the first. Per row they
/// carry one or two numbers that summarize the keys processed so far. Their scores are in bits, s /
/// ln 2. Entmax computes a threshold from the whole row.
namespace longhand {

enum class Rule : std::uint8_t { softmax, stick, tra, entmax };

constexpr std::string_view name_of(Rule rule) {
  constexpr std::string_view names[] = {"softmax", "stick", "tra", "entmax"};
  return names[static_cast<std::size_t>(rule)];
}
/// True if a query sees only the keys before its own position.
constexpr bool strict(Rule rule) { return rule == Rule::stick; }
/// True if the keys of a query are processed from the nearest to the first.
constexpr bool leftward(Rule rule) { return rule == Rule::stick || rule == Rule::tra; }
/// The factor by which scores are multiplied before a rule's formulas: entmax uses half of the
/// scores, all other rules use scores in bits.
constexpr float unit_of(Rule rule) { return rule == Rule::entmax ? 0.5f : 1.44269504088896340736f; }

namespace rules {

inline constexpr double ln_of_2 = 0.69314718055994530942;

/// Stick-breaking: each key receives the share sigmoid(s) of the weight that nearer keys have left.
struct Stick {
  /// If less weight is left, processing ends: all further weights together are less than 2^-30,
  /// which is a sixty-fourth of the rounding unit of 1 in f32.
  static constexpr float spent = 0x1p-30f;

  /// taken = sigmoid(s) and kept = 1 - sigmoid(s), both with full precision.
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
  /// Returns dS. `rest` is the sum of p dP over this key and all earlier ones, and starts as D. A
  /// key gets `taken` times any error of `rest`, so p must be the very number that multiplied v in
  /// y: rounded where that product rounds its operands.
  template <class V>
  static constexpr V gradient(V taken, V p, V dp, V& rest) {
    const V part = p * dp, ds = part - taken * rest;
    rest = rest - part;
    return ds;
  }
};

/// Threshold relative attention: a softmax over the positive scores only. For every positive score
/// from the key's own up to the query's, `pull` is added to the key's score.
struct Tra {
  template <class V>
  static constexpr V logit(V s, V pull, V& count) {
    const V one = select(s > V(0.0), V(1.0), V(0.0));
    count = count + one;
    return select(s > V(0.0), s + pull * count, V(-std::numeric_limits<float>::infinity()));
  }
  /// Upper bound for the weights of all earlier keys if no score is above `highest`. A weight is at
  /// most 2^(bound + pull (count + 1)). The bound includes 30 bits for `spent` and one bit for each
  /// doubling of the number of keys. It is infinite if pull > 0: weights of earlier keys then need
  /// not be smaller.
  template <class V>
  static constexpr V bound(V highest, V pull, std::int64_t keys) {
    V all = 30;
    for (std::int64_t n = 1; n < keys; n *= 2) all += V(1);
    return pull > V(0) ? std::numeric_limits<V>::infinity() : highest + all;
  }
  /// Returns dS. If a key has the whole weight of its row, for example because it is the only key
  /// with a positive score, its gradient must be exactly 0. Its logit then equals the row's log_sum
  /// to the last bit, provided that both have the same type.
  template <class V>
  static constexpr V gradient(V logit, V log_sum, V p, V dp, V d) {
    const V none(0.0);
    return select(logit * V(ln_of_2) == log_sum, none, p * (dp - d));
  }
};

/// Entmax with alpha = 1.5: P = [x - t]_+^2, where x are half of the scores and t is such that a
/// row sums to 1.
struct Entmax {
  static constexpr int most_steps = 64;  // 12 steps suffice if scores are far apart or numerous

  /// The square root of P. Gradients are proportional to it.
  template <class V>
  static constexpr V weight(V x, V threshold) {
    const V above = x - threshold;
    return select(above > V(0.0), above, V(0.0));
  }
  /// One step of Newton's method towards t, given the sums of [x - threshold]_+ and of its square
  /// at a threshold not above t. The result exceeds t only by rounding errors.
  template <class V>
  static constexpr V step(V threshold, V sum, V squares) {
    const V more = (squares - V(1.0)) / (sum + sum);
    return select(more > V(0.0), threshold + more, threshold);
  }
  /// The threshold t of a whole row.
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

}  // namespace rules
}  // namespace longhand
