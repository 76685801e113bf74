#pragma once

#include "core/cpu/attention/gradient_space.h"
#include "core/cpu/attention/panel.h"
#include "core/cpu/attention/sight.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// `seen`, widened by the rows that tiles may also read; both ends are even.
inline Range widened(Range seen, std::int64_t keys) {
  const Range wide =
      Sight::clip(seen.begin - tile_rows, seen.end + tile_rows, round_up(keys, tile_rows));
  return {wide.begin & ~1, (wide.end + 1) & ~1};
}

/// Stores P and dS of the rows r and r + 1 in the layouts that the products read.
template <class Product, bool make_p, bool make_ds>
[[gnu::always_inline]] inline void put_gradients(const GradientSpace<Product>& space, int r,
                                                 std::int64_t t, Vec p0, Vec p1, Vec d0, Vec d1) {
  if constexpr (make_p) {
    if (!make_ds || !Product::rounds) {
      store(space.p + r * panel + t, p0);
      store(space.p + (r + 1) * panel + t, p1);
    }
  }
  if constexpr (Product::depth == 1) {
    if constexpr (Product::rounds && make_p) {
      store(space.p_rows + r * panel + t, Product::rounded(p0));
      store(space.p_rows + (r + 1) * panel + t, Product::rounded(p1));
    }
    if constexpr (make_ds) {
      store(space.ds + r * panel + t, Product::rounded(d0));
      store(space.ds + (r + 1) * panel + t, Product::rounded(d1));
    }
  } else {
    constexpr int row = panel / 2;
    if constexpr (make_p) {
      float* const at = space.p_rows + r * row + t / 2;
      Product::put_rows(at, p0, at + row, p1);
    }
    if constexpr (make_ds) {
      float* const at = space.ds_rows + r * row + t / 2;
      Product::put_rows(at, d0, at + row, d1);
      Product::put_across(space.ds_keys + r / 2 * panel + t, d0, d1);
    }
  }
}

/// Turns scores and dP into P = 2^(s - log) and dS = P (dP - D), times a factor, as packed words;
/// zero where unseen. For entmax, dS uses the roots of P instead of P. Without `make_p`, P already
/// exists in f32; without `make_ds`, only P is made. `first` is the block's first key, counted
/// within the range. Scores that are `shifted` get c_i - c_j, and the sums of dS over queries and
/// over keys are accumulated.
template <class Product, Rule rule, bool make_p, bool make_ds, bool shifted>
void score_gradients(const Sight& sight, const GradientSpace<Product>& space, std::int64_t first) {
  const float* const key_shifts = space.key_shifts + first;
  float* const sums = space.key_shift_sums + first * lanes;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec log = load(space.logs + t), own = load(space.sums + t);
    const Vec scale = load(space.scale + t), times = load(space.times + t);
    const Vec shift = load(space.shifts + t);
    Vec row_sum = load(space.row_sums + t);
    const auto probability = [&](int r) {
      const Vec x = load(space.p + r * panel + t);
      if (!make_p) return x;
      if constexpr (rule == Rule::entmax) {
        const Vec s = score_of<Product, FormulaOf<rule>, shifted>(x, scale, shift, key_shifts + r);
        return rules::Entmax::weight(s, log);
      } else {
        const Vec less = shifted ? fma(Vec(log2_of_e), Vec(key_shifts[r]) - shift, log) : log;
        return exp2(Product::rounds ? fma(scale, x, -less) : x - less);
      }
    };
    const auto squared = [](Vec w) { return rule == Rule::entmax ? w * w : w; };
    const auto gradient = [&](int r, Vec p) {
      const Vec x = p * (load(space.ds + r * panel + t) - own);
      return Product::rounds ? times * x : x;
    };
    const auto put = [&](int r, Vec p0, Vec p1, Vec d0, Vec d1) {
      if constexpr (make_ds && shifted) {
        store(sums + r * lanes, load(sums + r * lanes) + d0);
        store(sums + (r + 1) * lanes, load(sums + (r + 1) * lanes) + d1);
        row_sum += d0 + d1;
      }
      put_gradients<Product, make_p, make_ds>(space, r, t, squared(p0), squared(p1), d0, d1);
    };
    const auto edge = [&](int begin, int end) {
      const Vec zero(0.0f);
      for (int r = begin; r < end; r += 2) {
        const Mask sees = sight.sees(r, t), sees_next = sight.sees(r + 1, t);
        const Vec p0 = select(sees, probability(r), zero);
        const Vec p1 = select(sees_next, probability(r + 1), zero);
        put(r, p0, p1, select(sees, gradient(r, p0), zero),
            select(sees_next, gradient(r + 1, p1), zero));
      }
    };
    const Range inner{(by_all.begin + 1) & ~1, by_all.end & ~1};
    if (inner.empty()) {
      edge(rows.begin, rows.end);
    } else {
      edge(rows.begin, inner.begin);
      for (int r = inner.begin; r < inner.end; r += 2) {
        const Vec p0 = probability(r), p1 = probability(r + 1);
        put(r, p0, p1, gradient(r, p0), gradient(r + 1, p1));
      }
      edge(inner.end, rows.end);
    }
    if constexpr (make_ds && shifted) store(space.row_sums + t, row_sum);
  }
}

/// The same for leftward rules: rows from the last to the first. The numbers that the rule carries
/// for each query are updated in `walked`.
template <class Product, Rule rule, bool shifted>
void leftward_gradients(const Sight& sight, const GradientSpace<Product>& space,
                        std::int64_t first) {
  const float* const key_shifts = space.key_shifts + first;
  float* const sums = space.key_shift_sums + first * lanes;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec scale = load(space.scale + t), times = load(space.times + t);
    const Vec log = load(space.logs + t), own = load(space.sums + t), pull = load(space.pulls + t);
    const Vec log_sum = load(space.log_sums + t);
    const Vec shift = load(space.shifts + t);
    Vec known = load(space.walked[0] + t), sum = load(space.walked[1] + t);
    Vec row_sum = load(space.row_sums + t);
    // A spent row gets no more than the rounding error of its rest.
    if (rule == Rule::stick) sum = select(known < Vec(rules::Stick::spent), Vec(0.0f), sum);
    // Lanes beyond the last query contain meaningless numbers.
    const Mask queries = lane_indices() < IntVec(static_cast<std::int32_t>(sight.queries - t));
    const auto gradient = [&](Vec s, Vec dp, Vec& p) {
      if constexpr (rule == Rule::stick) {
        known = max(known, Vec(least_left));
        const auto broken = rules::Stick::broken(s);
        p = Product::rounded(rules::Stick::weigh(broken, known));
        return rules::Stick::gradient(broken.taken, p, dp, sum);
      } else {
        const Vec logit = rules::Tra::logit(s, pull, known);
        p = exp2_or_zero(logit - log);
        const Vec ds = rules::Tra::gradient(logit, log_sum, p, dp, own);
        sum = fma(ds, known, sum);
        return ds;
      }
    };
    const auto one = [&](int r, Vec& p) {
      const Vec s = score_of<Product, FormulaOf<rule>, shifted>(load(space.p + r * panel + t),
                                                                scale, shift, key_shifts + r);
      const Vec dp = load(space.ds + r * panel + t);
      Vec ds;
      if (r >= by_all.begin && r < by_all.end) {
        ds = gradient(s, dp, p);
      } else {
        const Mask sees = sight.sees(r, t);
        const Vec none(0.0f);
        ds = gradient(select(sees, s, Vec(-__builtin_inff())), select(sees, dp, none), p);
        p = select(sees, p, none);
        ds = select(sees, ds, none);
      }
      if (Product::rounds) ds = times * ds;
      if constexpr (shifted) {
        store(sums + r * lanes, load(sums + r * lanes) + select(queries, ds, Vec(0.0f)));
        row_sum += ds;
      }
      return ds;
    };
    for (int r = rows.end - 2; r >= rows.begin; r -= 2) {
      Vec p0, p1;
      const Vec d1 = one(r + 1, p1), d0 = one(r, p0);
      put_gradients<Product, true, true>(space, r, t, p0, p1, d0, d1);
    }
    store(space.walked[0] + t, known);
    store(space.walked[1] + t, sum);
    if (shifted) store(space.row_sums + t, row_sum);
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
