#pragma once

#include "core/cpu/attention/forward_space.h"
#include "core/rules/sigmoid.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Writes log2(n) for each query of a panel, where n is the number of keys that the query sees.
/// `position` is the position of the panel's first query.
inline void log_counts(std::int64_t position, const SegmentShape& shape, float* to) {
  for (std::int64_t t = 0; t < panel; ++t) {
    to[t] = static_cast<float>(least(position + t + 1, shape.window));
  }
  for (int t = 0; t < panel; t += lanes) store(to + t, Vec(log2_of_e) * log(load(to + t)));
}

/// Sigmoid attention of a single query.
struct SigmoidQuery {
  using Formula = rules::Sigmoid;
  static constexpr bool saves = false;
  Vec log_count;

  template <class T>
  void start(const AttentionRows<T>& task, std::int64_t row) {
    const std::int64_t keys = least(task.shape.offset + row + 1, task.shape.window);
    log_count = Vec(log2_of_e) * log(Vec(static_cast<float>(keys)));
  }
  float weigh(float* s, std::int64_t) const {
    for (std::int64_t r = 0; r < block; r += lanes) {
      store(s + r, Formula::weight(load(s + r) - log_count));
    }
    return 1;
  }
  static float share() { return 1; }
};

/// Sigmoid attention of the rows of a panel. `counts` contains log2(n) of each query, where n is
/// the number of keys that the query sees.
struct SigmoidRows {
  using Formula = rules::Sigmoid;
  using Query = SigmoidQuery;

  template <class T>
  static void start(const PanelRows<T>& rows) {
    log_counts(rows.task.shape.offset + rows.row, rows.task.shape, rows.state.counts);
  }

  /// Computes the weights p of a block of keys from its scores and stores them as packed words. p
  /// is 0 for keys that a query does not see. Returns false: sums over the previous blocks are
  /// never multiplied by a factor.
  template <class Product, bool shifted>
  static bool weigh(const Sight& sight, const float* key_shifts, const float* s, float* p,
                    const Running& to) {
    for (std::int64_t t = 0; t < sight.queries; t += lanes) {
      const std::int64_t unit = t / Sight::unit * Sight::unit;
      const Range seen = sight.keys_of(unit, Sight::unit);
      const Range by_all = sight.keys_of_all(unit, Sight::unit);
      const Vec times = load(to.times + t), shift = load(to.shifts + t);
      const Vec log_count = load(to.counts + t);
      const auto weight = [&](int r) {
        if (r < seen.begin || r >= seen.end) return Vec(0.0f);
        const Vec x = score_of<Product, Formula, shifted>(load(s + r * panel + t), times, shift,
                                                          key_shifts + r);
        const Vec w = Formula::weight(x - log_count);
        if (r >= by_all.begin && r < by_all.end) return w;
        return select(sight.sees(r, t), w, Vec(0.0f));
      };
      if constexpr (Product::depth == 1) {
        for (int r = seen.begin; r < seen.end; ++r) {
          store(p + r * panel + t, Product::rounded(weight(r)));
        }
      } else {
        for (int r = seen.begin & ~1; r < seen.end; r += 2) {
          const Vec first = weight(r), second = weight(r + 1);
          Product::put_across(p + r / 2 * panel + t, first, second);
        }
      }
    }
    return false;
  }

  static bool spent(const Running&) { return false; }
  static float share(float) { return 1; }
  static Vec log_sum(Vec, Vec) { return Vec(0.0f); }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
