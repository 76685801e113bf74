#pragma once

#include "core/cpu/attention/put_gradients.h"
#include "core/rules/softmax.h"

namespace longhand::cpu::LONGHAND_ISA::attention {

/// Computes the weights P and the gradients dS of a block of keys from the scores in space.p and dP
/// in space.ds, and stores them as packed words. P and dS are 0 for keys that a query does not see.
/// dS includes each query's factor space.times. Rule::weight() returns P of a score, or for entmax
/// the square root of P. The parameters are
///   make_p    if false, P is not computed: an earlier call has replaced the scores by P;
///   make_ds   if false, dS is not computed;
///   shifted   if true, the shift (Scores::decay) of the query minus the shift of the key is added
///             to each score, and the row sums and column sums of dS are accumulated;
///   first     the index of the block's first key, counted from the first key of the task.
template <class Product, class Rule, bool make_p, bool make_ds, bool shifted>
void score_gradients(const Sight& sight, const GradientSpace<Product>& space, std::int64_t first) {
  const float* const key_shifts = space.key_shifts + first;
  for (std::int64_t t = 0; t < sight.queries; t += lanes) {
    const std::int64_t unit = t / Sight::unit * Sight::unit;
    const Range by_all = sight.keys_of_all(unit, Sight::unit);
    const Range rows = widened(sight.keys_of(unit, Sight::unit), sight.keys);
    const Vec log = load(space.logs + t), own = load(space.sums + t);
    const Vec scale = load(space.scale + t), times = load(space.times + t);
    const Vec shift = load(space.shifts + t);
    Vec row_sum = load(space.row_sums + t);
    float* const sums = space.key_shift_sums + first * Sums::count + t % Sums::count;
    const auto probability = [&](int r) {
      const Vec x = load(space.p + r * panel + t);
      if (!make_p) return x;
      return Rule::template weight<Product, shifted>(x, scale, log, shift, key_shifts + r);
    };
    const auto gradient = [&](int r, Vec p) {
      const Vec x = Rule::score_gradient(p, load(space.ds + r * panel + t), own);
      return Product::rounds ? times * x : x;
    };
    const auto put = [&](int r, Vec p0, Vec p1, Vec d0, Vec d1) {
      if constexpr (make_ds && shifted) {
        store(sums + r * Sums::count, load(sums + r * Sums::count) + d0);
        store(sums + (r + 1) * Sums::count, load(sums + (r + 1) * Sums::count) + d1);
        row_sum += d0 + d1;
      }
      put_gradients<Product, make_p, make_ds>(space, r, t, Rule::probability(p0),
                                              Rule::probability(p1), d0, d1);
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

/// The functions that define softmax for the backward pass. The structs of the other rules, such as
/// entmax and sigmoid, inherit them and override some.
struct SoftmaxGradients {
  using Formula = rules::Softmax;
  // True if the weights of a row sum to 1 when there is no sink.
  static constexpr bool normalized = true;
  // The query at this position sees exactly one key if there is a causal mask. For DeltaFormer,
  // whose queries do not see the key at their own position, it is 1.
  static constexpr std::int64_t lone_query = 0;

  /// Returns P = 2^(s - log) for a score s that includes the factor log2(e), where `log` is the
  /// base-2 logarithm of the softmax denominator. If `shifted` is true, s is x plus log2(e) times
  /// the shift of the query minus the shift of the key, otherwise s is x. If the product rounds its
  /// operands, x is first multiplied by `scale`.
  template <class Product, bool shifted>
  static Vec weight(Vec x, Vec scale, Vec log, Vec shift, const float* key_shift) {
    const Vec less = shifted ? fma(Vec(log2_of_e), Vec(*key_shift) - shift, log) : log;
    return exp2(Product::rounds ? fma(scale, x, -less) : x - less);
  }
  static Vec probability(Vec p) { return p; }
  static Vec score_gradient(Vec p, Vec dp, Vec d) { return p * (dp - d); }

  /// Reads log_sum, the logarithm of each row's softmax denominator, and converts it to base 2.
  template <class T, class Product>
  static void start(const GradientPanel<T, Product>& rows) {
    const auto log_sum = rows.column(rows.task.log_sum);
    for (std::int64_t t = 0; t < panel; ++t) {
      rows.space.logs[t] = t < rows.count ? log2_of_e * *log_sum.row(rows.row + t) : 1e30f;
    }
  }
  /// Returns the rows m_i from which D_i = dy_i . m_i is computed, for dS_ij = P_ij (dP_ij - D_i).
  /// For softmax, m_i is y_i. For rules without D_i, such as sigmoid, the result is null.
  template <class T>
  static HeadRows<const T> mean(const AttentionGradients<T>& task) {
    return task.y;
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA::attention
