#pragma once

#include "core/cpu/attention/put_gradients.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// The state of stick-breaking or TRA for a SIMD vector of queries. Keys are processed from the
/// last to the first, and each key updates `known` and `sum`. For stick-breaking, `known` is the
/// weight not yet assigned, and `sum` is the sum of P dP over the remaining keys. For TRA, `known`
/// is the number of positive scores so far, and `sum` is the gradient of the count bias so far. The
/// other members do not change.
struct Walk {
  Vec known, sum;
  Vec pull, log, log_sum, d;
};

/// Computes P and dS of a block from its scores and dP, like score_gradients, but for rules whose
/// weights depend on later keys (stick-breaking, TRA). Processes the keys from the last to the
/// first. At each key it updates the numbers that the rule keeps for each query (walked_numbers in
/// kernels.h).
template <class Product, class Rule, bool shifted>
void leftward_gradients(const Sight& sight, const GradientSpace<Product>& space,
                        std::int64_t first) {
  const float* const key_shifts = space.key_shifts + first;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec scale = load(space.scale + t), times = load(space.times + t);
    const Vec shift = load(space.shifts + t);
    Walk walk{.known = load(space.walked[0] + t),
              .sum = load(space.walked[1] + t),
              .pull = load(space.pulls + t),
              .log = load(space.logs + t),
              .log_sum = load(space.log_sums + t),
              .d = load(space.sums + t)};
    Vec row_sum = load(space.row_sums + t);
    float* const sums = space.key_shift_sums + first * Sums::count + t % Sums::count;
    // True for lanes that contain a query. All other lanes contain meaningless numbers.
    const Mask queries = lane_indices() < IntVec(static_cast<std::int32_t>(sight.queries - t));
    const auto one = [&](int r, Vec& p) {
      const Vec s = score_of<Product, typename Rule::Formula, shifted>(
          load(space.p + r * panel + t), scale, shift, key_shifts + r);
      const Vec dp = load(space.ds + r * panel + t);
      Vec ds;
      if (r >= by_all.begin && r < by_all.end) {
        ds = Rule::template gradient<Product>(walk, s, dp, p);
      } else {
        const Mask sees = sight.sees(r, t);
        const Vec none(0.0f);
        ds = Rule::template gradient<Product>(walk, select(sees, s, Vec(-__builtin_inff())),
                                              select(sees, dp, none), p);
        p = select(sees, p, none);
        ds = select(sees, ds, none);
      }
      if (Product::rounds) ds = times * ds;
      if constexpr (shifted) {
        store(sums + r * Sums::count,
              load(sums + r * Sums::count) + select(queries, ds, Vec(0.0f)));
        row_sum += ds;
      }
      return ds;
    };
    for (int r = rows.end - 2; r >= rows.begin; r -= 2) {
      Vec p0, p1;
      const Vec d1 = one(r + 1, p1), d0 = one(r, p0);
      put_gradients<Product, true, true>(space, r, t, p0, p1, d0, d1);
    }
    store(space.walked[0] + t, walk.known);
    store(space.walked[1] + t, walk.sum);
    if (shifted) store(space.row_sums + t, row_sum);
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
