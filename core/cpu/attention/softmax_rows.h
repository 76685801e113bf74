#pragma once

#include "core/cpu/attention/forward_space.h"
#include "core/rules/softmax.h"

/// Softmax of the rows of a panel. Each query has a running maximum m and a running sum l of
/// weights. A block of keys changes m to m' and updates the sums:
///   m' = max(m, max_j s_ij);  y = 2^(m - m') y + sum_j 2^(s_ij - m') v_j
namespace longhand::cpu::LONGHAND_ISA::attention {

/// Computes p = power(s - m) from the scores s of a block, for the queries t .. t + lanes - 1. p is
/// 0 for unseen keys. Stores p as packed words, and in f32 in place of the scores, because ChaCAL
/// and DeltaFormer read it there. `before` and m are the running maxima before and after the block.
/// Updates the running state, and sets `shrink` to the factor of earlier sums. Returns true if a
/// maximum changed.
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

/// Softmax of a single query, with a running maximum and a running sum.
struct SoftmaxQuery {
  using Formula = rules::Softmax;
  static constexpr bool saves = true;
  // The maximum is finite, so that inf - inf cannot occur before the first key.
  float maximum = lowest, denominator = 0;

  template <class T>
  void start(const AttentionRows<T>& task, std::int64_t) {
    if (!task.sink) return;
    const float sink = *task.sink * log2_of_e;
    maximum = sink > maximum ? sink : maximum;
    denominator = 1;
  }
  /// p_j = 2^(s_j - m), where m is the maximum score so far, including this block. Returns
  /// 2^(m' - m), where m' is the maximum before this block.
  float weigh(float* s, std::int64_t) {
    Vec greatest = load(s);
    for (std::int64_t r = lanes; r < block; r += lanes) greatest = max(greatest, load(s + r));
    const float before = maximum, now = max(greatest);
    maximum = before > now ? before : now;
    Vec total(0.0f);
    for (std::int64_t r = 0; r < block; r += lanes) {
      const Vec p = exp2(load(s + r) - Vec(maximum));
      store(s + r, p);
      total += p;
    }
    const Vec factor = exp2(Vec(before) - Vec(maximum));
    denominator = sum(fma(factor, Vec(denominator / static_cast<float>(lanes)), total));
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

  /// Initializes the maxima and sums with the sink.
  template <class T>
  static void start(const PanelRows<T>& rows) {
    const float* const sink = rows.task.sink;
    const Vec highest = max(Vec(lowest), Vec(sink ? *sink * log2_of_e : lowest));
    for (int t = 0; t < panel; t += lanes) {
      store(rows.state.maxima + t, highest);
      store(rows.state.sums + t, Vec(sink ? 1.0f : 0.0f));
    }
  }

  /// Replaces the scores of a block by p. Returns true if earlier sums must be multiplied by
  /// `shrink`.
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

  /// The factor by which a row's summed values are multiplied at the end.
  static float share(float sum) { return 1.0f / sum; }

  /// The log of the denominator.
  static Vec log_sum(Vec m, Vec sum) { return fma(m, Vec(ln_of_2), log(sum)); }
  /// Like log_sum, for rows that may see no key. Such a row has the sum 0, and the result is 0.
  static Vec log_sum_or_zero(Vec m, Vec sum) {
    return select(sum > Vec(0.0f), log_sum(m, sum), Vec(0.0f));
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
