#pragma once

#include "core/cpu/attention/softmax_rows.h"
#include "core/rules/tra.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Threshold relative attention (core/rules/tra.h) of a single query. Keys are processed from the
/// last to the first. `count` is the number of positive scores so far.
struct TraQuery : SoftmaxQuery {
  using Formula = rules::Tra;
  static constexpr bool saves = false;
  float pull = 0, count = 0;

  template <class T>
  void start(const AttentionRows<T>& task, std::int64_t row) {
    pull = log2_of_e * *task.pull.row(row);
  }
  float weigh(float* s, std::int64_t keys) {
    for (std::int64_t r = keys - 1; r >= 0; --r) s[r] = Formula::logit(s[r], pull, count);
    return SoftmaxQuery::weigh(s, keys);
  }
  float share() const { return denominator == 0 ? 0.0f : 1.0f / denominator; }
};

/// Threshold relative attention (core/rules/tra.h) of a panel of queries: a softmax of logits,
/// which are computed from the last key of a row to the first. Running::counts contains the number
/// of positive scores of each row so far.
struct TraRows {
  using Formula = rules::Tra;
  using Query = TraQuery;
  static constexpr bool bounds = true;

  template <class T>
  static void start(const PanelRows<T>& rows) {
    const Running& to = rows.state;
    gather(rows.task.pull, rows.row, rows.count, 0.0f, to.pulls);
    for (int t = 0; t < panel; t += lanes) {
      store(to.maxima + t, Vec(lowest));
      store(to.sums + t, Vec(0.0f));
      store(to.pulls + t, Vec(log2_of_e) * load(to.pulls + t));
      store(to.counts + t, Vec(0.0f));
    }
    for (std::int64_t t = 0; t < panel; ++t) {
      to.bounds[t] = t < rows.count ? __builtin_inff() : -__builtin_inff();
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
      const Vec shift = load(to.shifts + t), pull = load(to.pulls + t);
      Vec m = before, count = load(to.counts + t);
      for (int r = seen.end - 1; r >= seen.begin; --r) {
        const Vec x = score_of<Product, Formula, shifted>(load(column + r * panel), times, shift,
                                                          key_shifts + r);
        const bool all = r >= by_all.begin && r < by_all.end;
        const Vec z = all ? x : select(sight.sees(r, t), x, Vec(0.0f));
        const Vec logit = Formula::logit(z, pull, count);
        store(column + r * panel, logit);
        m = max(m, logit);
      }
      store(to.counts + t, count);
      const bool moved =
          powers<Product>(seen, t, before, m, s, p, to, [](Vec x) { return exp2_or_zero(x); });
      shrinks = shrinks || moved;
    }
    return shrinks;
  }

  /// True if no earlier key can have a weight in any row of the panel.
  static bool spent(const Running& state) {
    for (int t = 0; t < panel; t += lanes) {
      const Vec most_far =
          fma(load(state.pulls + t), load(state.counts + t) + Vec(1.0f), load(state.bounds + t));
      if (any(~(most_far < load(state.maxima + t)))) return false;
    }
    return true;
  }

  /// Computes Running::bounds, from which spent() decides whether earlier keys can have a weight.
  /// Tra::bound() requires an upper bound of each query's scores with all earlier keys. It is
  /// computed from the norm of the query vector, the largest norm of an earlier key vector, and the
  /// shifts (Scores::decay) of the query and the earlier keys.
  template <class T>
  static void bound(const PanelRows<T>& rows, float longest_key, float least_shift) {
    const Running& to = rows.state;
    const SegmentShape& shape = rows.task.shape;
    for (std::int64_t t = 0; t < rows.count; ++t) {
      const std::int64_t row = rows.row + t;
      const float query = longest_row(rows.task.q, row, row + 1, shape.width);
      const float times = to.times[t];
      const float highest = query * longest_key * (times < 0 ? -times : times) +
                            log2_of_e * (to.shifts[t] - least_shift);
      to.bounds[t] = Formula::bound(highest, to.pulls[t], shape.keys);
    }
  }

  static float share(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }
  static Vec log_sum(Vec m, Vec sum) { return SoftmaxRows::log_sum_or_zero(m, sum); }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
