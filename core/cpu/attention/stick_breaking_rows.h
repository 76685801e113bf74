#pragma once

#include "core/cpu/attention/forward_space.h"
#include "core/rules/stick_breaking.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Stick-breaking of a single query, which distributes the weight 1 over its keys, from the last to
/// the first. `left` is the weight that is not yet distributed.
struct StickBreakingQuery {
  using Formula = rules::Stick;
  static constexpr bool saves = false;
  float left = 1;

  template <class T>
  void start(const AttentionRows<T>&, std::int64_t) {}
  /// Replaces the scores s of a block of keys by weights. From the last key to the first, each key
  /// receives the share sigmoid(s) of the weight that is left. Returns 1, the factor for sums over
  /// the previous blocks, because these sums do not change.
  float weigh(float* s, std::int64_t count) {
    float kept[block];
    for (std::int64_t r = 0; r < block; r += lanes) {
      const auto broken = Formula::broken(load(s + r));
      store(s + r, broken.taken);
      store(kept + r, broken.kept);
    }
    for (std::int64_t r = count - 1; r >= 0; --r) {
      s[r] *= left;
      left *= kept[r];
    }
    return 1;
  }
  bool spent() const { return left < Formula::spent; }
  static float share() { return 1; }
};

/// Stick-breaking of a panel of queries. Each query distributes the weight 1 over its keys, from
/// the last to the first. Running::sums contains the weight that each query has not yet
/// distributed.
struct StickBreakingRows {
  using Formula = rules::Stick;
  using Query = StickBreakingQuery;

  template <class T>
  static void start(const PanelRows<T>& rows) {
    for (std::int64_t t = 0; t < panel; ++t) rows.state.sums[t] = t < rows.count ? 1.0f : 0.0f;
  }

  /// Computes the weights p of a block of keys from their scores s, and stores them as packed
  /// words. p is 0 for keys that a query does not see. Returns false: sums over the previous blocks
  /// are never multiplied by a factor.
  template <class Product, bool shifted>
  static bool weigh(const Sight& sight, const float* key_shifts, const float* s, float* p,
                    const Running& to) {
    for (std::int64_t t = 0; t < sight.queries; t += lanes) {
      const std::int64_t unit = t / Sight::unit * Sight::unit;
      const Range seen = sight.keys_of(unit, Sight::unit);
      const Range by_all = sight.keys_of_all(unit, Sight::unit);
      const Vec times = load(to.times + t), shift = load(to.shifts + t);
      Vec left = load(to.sums + t);
      const auto weight = [&](int r) {
        const Vec x = score_of<Product, Formula, shifted>(load(s + r * panel + t), times, shift,
                                                          key_shifts + r);
        left = max(left, Vec(least_left));
        if (r >= by_all.begin && r < by_all.end) return Formula::weigh(x, left);
        const Mask sees = sight.sees(r, t);
        const Vec w = Formula::weigh(select(sees, x, Vec(-__builtin_inff())), left);
        return select(sees, w, Vec(0.0f));
      };
      if constexpr (Product::depth == 1) {
        for (int r = seen.end - 1; r >= seen.begin; --r) {
          store(p + r * panel + t, Product::rounded(weight(r)));
        }
      } else {
        for (int r = (seen.end - 1) & ~1; r >= (seen.begin & ~1); r -= 2) {
          const Vec second = r + 1 < seen.end ? weight(r + 1) : Vec(0.0f);
          const Vec first = r >= seen.begin ? weight(r) : Vec(0.0f);
          Product::put_across(p + r / 2 * panel + t, first, second);
        }
      }
      store(to.sums + t, left);
    }
    return false;
  }

  /// True if the weight that is left for the remaining keys is negligible in every row of the
  /// panel.
  static bool spent(const Running& state) {
    for (int t = 0; t < panel; t += lanes) {
      if (any(load(state.sums + t) >= Vec(Formula::spent))) return false;
    }
    return true;
  }
  static float share(float) { return 1; }
  static Vec log_sum(Vec, Vec) { return Vec(0.0f); }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
