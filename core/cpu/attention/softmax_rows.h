#pragma once

#include "core/cpu/attention/forward_space.h"
#include "core/rules/softmax.h"

/// Softmax of a panel of 64 queries. The scores s include the factor log2(e). Each query has a
/// running maximum m, a running sum l of weights, and a running sum y of weighted values. A block
/// of keys changes m to m' and updates l and y:
///   m' = max(m, max_j s_ij);  l = 2^(m - m') l + sum_j 2^(s_ij - m');
///   y = 2^(m - m') y + sum_j 2^(s_ij - m') v_j
namespace longhand::cpu::LONGHAND_ISA::attention {

/// Computes the unnormalized weights p = power(s - m) of a block of keys from their scores s, for
/// the queries t .. t + lanes - 1. The argument power(x) computes 2^x. `before` and m are each
/// query's maximum score before and after the block. Stores p as packed words (one f32 or two bf16
/// numbers each), and also in place of the scores, where ChaCAL and DeltaFormer read it. Adds p to
/// the running sums of weights, and sets to.shrink to 2^(before - m), by which sums over the
/// previous blocks must be multiplied. Returns true if a maximum changed.
template <class Product, class Power>
[[gnu::always_inline]] inline bool powers(Range seen, std::int64_t t, Vec before, Vec m, float* s,
                                          float* p, const Running& to, const Power& power) {
  float* const column = s + t;
  Vec sum(0.0f);
  const auto exponential = [&](int row) {
    if (row < seen.begin || row >= seen.end) return Vec(0.0f);
    const Vec x = power(load(column + row * panel) - m);
    sum += x;
    if constexpr (!Product::tiled) store(column + row * panel, x);
    return x;
  };
  if constexpr (Product::depth == 1) {
    for (int r = seen.begin; r < seen.end; ++r) {
      const Vec x = exponential(r);
      if (Product::rounds) store(p + r * panel + t, Product::rounded(x));
    }
  } else {
    for (int r = seen.begin & ~1; r < seen.end; r += 2) {
      const Vec x = exponential(r), y = exponential(r + 1);
      Product::put_across(p + r / 2 * panel + t, x, y);
    }
  }
  const Vec factor = exp2(before - m);
  store(to.shrink + t, factor);
  store(to.sums + t, fma(load(to.sums + t), factor, sum));
  store(to.maxima + t, m);
  return any(before != m);
}

/// Softmax of a single query, with a running maximum of the scores and a running sum of the
/// weights.
struct SoftmaxQuery {
  using Formula = rules::Softmax;
  static constexpr bool saves = true;
  // The initial maximum is finite, because the difference of two infinite maxima would be NaN.
  float maximum = lowest, denominator = 0;

  template <class T>
  void start(const AttentionRows<T>& task, std::int64_t) {
    if (!task.sink) return;
    const float sink = *task.sink * log2_of_e;
    maximum = sink > maximum ? sink : maximum;
    denominator = 1;
  }
  /// Replaces the scores s_j of a block of keys by the weights 2^(s_j - m), where m is the maximum
  /// score so far, including this block. Returns 2^(m' - m), the factor for sums over the previous
  /// blocks, where m' is the maximum before this block.
  float weigh(float* s, std::int64_t) {
    Vec greatest = load(s);
    for (std::int64_t r = lanes; r < block; r += lanes) greatest = max(greatest, load(s + r));
    const float before = maximum, now = max(greatest);
    maximum = before > now ? before : now;
    Sums total;
    for_each_part(block, [&](auto r, auto v, int part) {
      const Vec p = exp2(v.load(s + r) - Vec(maximum));
      v.store(s + r, p);
      total.part[part] += p;
    });
    const Vec factor = exp2(Vec(before) - Vec(maximum));
    denominator = first_lane(fma(factor, Vec(denominator), Vec(sum(total))));
    return first_lane(factor);
  }
  static constexpr bool spent() { return false; }
  float share() const { return 1.0f / denominator; }
  template <class T>
  void save(const AttentionRows<T>& task, std::int64_t row) const {
    if (!task.log_sum) return;
    *task.log_sum.row(row) = first_lane(fma(Vec(maximum), Vec(ln_of_2), log(Vec(denominator))));
  }
};

struct SoftmaxRows {
  using Formula = rules::Softmax;
  using Query = SoftmaxQuery;

  /// Initializes the running maximum of the scores and the running sum of the weights of each row.
  /// If there is a sink (a score without a value), the maximum and the sum start as if the sink
  /// were the first score.
  template <class T>
  static void start(const PanelRows<T>& rows) {
    const float* const sink = rows.task.sink;
    const Vec highest = max(Vec(lowest), Vec(sink ? *sink * log2_of_e : lowest));
    for (int t = 0; t < panel; t += lanes) {
      store(rows.state.maxima + t, highest);
      store(rows.state.sums + t, Vec(sink ? 1.0f : 0.0f));
    }
  }

  /// Replaces the scores s of a block of keys by unnormalized weights, which are also packed into
  /// p. Returns true if sums over the previous blocks must be multiplied by to.shrink.
  template <class Product, bool shifted>
  static bool weigh(const Sight& sight, const float* key_shifts, float* s, float* p,
                    const Running& to) {
    bool shrinks = false;
    for (std::int64_t t = 0; t < sight.queries; t += lanes) {
      const std::int64_t unit = t / Sight::unit * Sight::unit;
      const Range seen = sight.keys_of(unit, Sight::unit);
      const Range by_all = sight.keys_of_all(unit, Sight::unit);
      float* const column = s + t;
      const Vec before = load(to.maxima + t), times = load(to.times + t);
      Vec m = before, other = before;
      const Vec shift = load(to.shifts + t);
      const auto scaled = [&](int r) {
        return score_of<Product, Formula, shifted>(load(column + r * panel), times, shift,
                                                   key_shifts + r);
      };
      const auto edge = [&](int begin, int end) {
        for (int r = begin; r < end; ++r) {
          const Vec x = select(sight.sees(r, t), scaled(r), Vec(-__builtin_inff()));
          store(column + r * panel, x);
          m = max(m, x);
        }
      };
      const Range inner = by_all.empty() ? Range{seen.end, seen.end} : by_all;
      int r = inner.begin;
      edge(seen.begin, inner.begin);
      for (; r + 2 <= inner.end; r += 2) {
        const Vec x = scaled(r), y = scaled(r + 1);
        if (Product::rounds || shifted) {
          store(column + r * panel, x);
          store(column + (r + 1) * panel, y);
        }
        m = max(m, x);
        other = max(other, y);
      }
      edge(r, seen.end);
      m = max(m, other);
      const bool moved =
          powers<Product>(seen, t, before, m, s, p, to, [](Vec x) { return exp2(x); });
      shrinks = shrinks || moved;
    }
    return shrinks;
  }

  static bool spent(const Running&) { return false; }

  /// Returns the factor by which a row's sum of weighted values is multiplied at the end. The
  /// argument is the row's sum of unnormalized weights.
  static float share(float sum) { return 1.0f / sum; }

  /// Returns ln(2^m sum), the logarithm of the softmax denominator, where m is the row's maximum
  /// score times log2(e), and `sum` is the row's sum of unnormalized weights.
  static Vec log_sum(Vec m, Vec sum) { return fma(m, Vec(ln_of_2), log(sum)); }
  /// Like log_sum, but returns 0 for a row in which no key has a weight. `sum` is 0 in such a row.
  static Vec log_sum_or_zero(Vec m, Vec sum) {
    return select(sum > Vec(0.0f), log_sum(m, sum), Vec(0.0f));
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
