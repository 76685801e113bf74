#include "autograd/composed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/cumulate.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/reduce.h"
#include "autograd/softmax.h"
#include "autograd/triangle.h"
#include "core/error.h"
#include "core/rules.h"

namespace longhand {
namespace {

/// The heads of x in the rows first .. first + count - 1, as matrices [heads, count, width].
Var matrices(const HeadVars& x, std::int64_t first, std::int64_t count) {
  const Var rows = columns(slice(x.data, first, count), x.first_column, x.heads * x.width);
  return permute(reshape(rows, {count, x.heads, x.width}), {1, 0, 2});
}

Tensor constant(const Var& like, const Shape& shape, const std::vector<double>& values) {
  return Tensor::from(like.backend(), shape, like.value().dtype(), values);
}

/// Reshapes factors [1] or [batch] so that they multiply a tensor [batch, rows, columns].
Var of_matrices(const Var& factors) { return reshape(factors, {factors.value().size(), 1, 1}); }

struct Sequence {
  std::int64_t number, query, queries, key, keys;
};

Sequence sequence_of(const Segments& queries, const Segments& keys, std::int64_t number) {
  const auto at = static_cast<std::size_t>(number);
  return {number, queries.begins()[at], queries.lengths()[at], keys.begins()[at],
          keys.lengths()[at]};
}

/// Calls body for every sequence, which returns [heads, queries, width]. The rows of all sequences
/// are concatenated in the order of tokens.
template <class Body>
Var each_sequence(const HeadVars& q, const Segments& queries, const Segments& keys,
                  std::int64_t width, const Body& body) {
  LONGHAND_CHECK(queries.tile(), "expected consecutive sequences of queries");
  const DType type = q.data.value().dtype();
  std::vector<Var> all{Tensor(q.data.backend(), {0, q.heads * width}, type)};
  for (std::int64_t s = 0; s < queries.count(); ++s) {
    const Sequence sequence = sequence_of(queries, keys, s);
    if (sequence.queries == 0) continue;
    const Var y = body(sequence);  // [heads, queries, width]
    const Var rows = reshape(permute(y, {1, 0, 2}), {sequence.queries, q.heads * width});
    all.push_back(cast(rows, type));
  }
  return concat(all);
}

/// The softmax over the keys and a sink, with scores [heads, queries, keys]. The weight of the sink
/// is not part of the result.
Var with_sink(const Var& scores, const Var& sink, std::int64_t before) {
  const std::int64_t heads = scores.shape()[0], queries = scores.shape()[1];
  const std::int64_t keys = scores.shape()[2];
  std::vector<double> hidden;
  for (std::int64_t t = 0; t < queries; ++t) {
    for (std::int64_t j = 0; j < keys; ++j) hidden.push_back(j > before + t ? 1.0 : 0.0);
  }
  const Var seen = where(constant(scores, {queries, keys}, hidden),
                         number_like(scores, -std::numeric_limits<double>::infinity()), scores);
  const Var nothing = Tensor::zeros(scores.backend(), {heads, queries, 1}, scores.value().dtype());
  const Var more = nothing + reshape(sink, {heads, 1, 1});
  return narrow(softmax(concat({seen, more}, 2)), 2, 0, keys);
}

/// Stick-breaking, computed with logarithms:
///   ln P_ij = ln sigmoid(s_ij) + sum over j < m < i of ln(1 - sigmoid(s_im))
/// `seen` is 1 if a query sees a key. Both logarithms are computed from l = ln sigmoid(|s|), which
/// does not overflow for any score:
///   ln sigmoid(s) = min(s, 0) + l;  ln(1 - sigmoid(s)) = l - max(s, 0)
Var broken_sticks(const Var& scores, const Var& seen) {
  const std::int64_t keys = scores.shape()[2];
  const Var none = number_like(scores, 0);
  const Var s = where(seen, scores, none);
  std::vector<double> positive = s.value().to_doubles(), signs;  // constants in backward
  for (double& x : positive) {
    x = x >= 0 ? 1 : 0;
    signs.push_back(2 * x - 1);
  }
  const Var highest = s * constant(s, s.shape(), positive), lowest = s - highest;
  const Var size = s * constant(s, s.shape(), signs);
  const Var l = activate(Activation::log, activate(Activation::sigmoid, size));
  std::vector<double> later;  // entry (m, j) is 1 if m > j
  for (std::int64_t m = 0; m < keys; ++m) {
    for (std::int64_t j = 0; j < keys; ++j) later.push_back(m > j ? 1.0 : 0.0);
  }
  const Var left = where(seen, l - highest, none);
  const Var rows = reshape(left, {s.shape()[0] * s.shape()[1], keys});
  const Var sums = matmul(rows, constant(s, {keys, keys}, later), {.math = Math::exact});
  return where(seen, activate(Activation::exp, lowest + l + reshape(sums, s.shape())), none);
}

/// TRA. The scores determine which keys have a positive score, and how many of these lie between
/// each key and the query. Backward treats both as constants.
Var positive_alone(const Var& scores, const Var& seen, const Var& pull) {
  const std::int64_t keys = scores.shape()[2];
  std::vector<double> kept = scores.value().to_doubles(), counts(kept.size(), 0.0);
  const std::vector<double> sees = seen.value().to_doubles();
  // A row without positive scores keeps its first key, so that its softmax is defined.
  std::vector<double> read = kept;
  for (std::size_t row = 0; row < kept.size(); row += static_cast<std::size_t>(keys)) {
    double count = 0;
    for (std::size_t j = row + static_cast<std::size_t>(keys); j-- > row;) {
      kept[j] = kept[j] > 0 && sees[j % sees.size()] > 0 ? 1 : 0;
      counts[j] = count += kept[j];
      read[j] = kept[j];
    }
    if (count == 0) read[row] = 1;
  }
  const Var of_kept = constant(scores, scores.shape(), kept);
  const Var logits = scores + pull * constant(scores, scores.shape(), counts);
  const Var hidden = number_like(scores, -std::numeric_limits<double>::infinity());
  return of_kept * softmax(where(constant(scores, scores.shape(), read), logits, hidden));
}

/// Entmax in closed form. The scores determine which keys have a weight. Backward treats this set
/// of keys as a constant. Let k be their number, m the mean of their x, and u the mean of their
/// (x - m)^2. Then
///   t = m - sqrt(1 / k - u)
Var thresholded(const Var& scores, const Var& seen) {
  const std::int64_t keys = scores.shape()[2];
  const std::vector<double> sees = seen.value().to_doubles();
  std::vector<double> x = scores.value().to_doubles(), kept(x.size(), 0.0), counts;
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(keys)) {
    std::vector<double> visible;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j) {
      if (sees[j % sees.size()] > 0) visible.push_back(x[j] /= 2);
    }
    const double t = rules::Entmax::threshold(visible.data(), std::ssize(visible));
    double count = 0;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j) {
      kept[j] = sees[j % sees.size()] > 0 && x[j] > t ? 1 : 0;
      count += kept[j];
    }
    counts.push_back(count);
  }
  const Shape column{scores.shape()[0], scores.shape()[1], 1};
  const Var of_kept = constant(scores, scores.shape(), kept), k = constant(scores, column, counts);
  const auto mean_of = [&](const Var& values) {
    return reshape(sum(of_kept * values, -1), column) / k;
  };
  const Var half = scale(scores, 0.5), mean = mean_of(half), far = half - mean;
  const Var inner = 1.0 / k - mean_of(far * far);
  const Var root = activate(Activation::exp, scale(activate(Activation::log, inner), 0.5));
  return of_kept * activate(Activation::square, far + root);
}

/// The rows first .. first + count - 1 of a [rows, heads] tensor, transposed to [heads, count].
Var by_head(const Var& x, std::int64_t first, std::int64_t count) {
  return permute(slice(x, first, count), {1, 0});
}

/// The scores of one sequence, [q.heads, queries, keys], in the master type.
Var score_matrices(const ScoreVars& s, const Sequence& at, std::optional<Math> math,
                   const AddToScores& more) {
  const std::int64_t group = s.q.heads / s.k.heads;
  const Shape shape{s.q.heads, at.queries, at.keys};
  const Var q =
      reshape(matrices(s.q, at.query, at.queries), {s.k.heads, group * at.queries, s.q.width});
  const Var k = matrices(s.k, at.key, at.keys);
  Var scores = reshape(matmul(q, k,
                              {.transpose_b = true,
                               .alpha = s.value().scale,
                               .out = master_type(q.value().dtype()),
                               .math = math}),
                       shape);
  if (s.multiplier) {
    scores =
        scores * reshape(by_head(s.multiplier, at.query, at.queries), {s.q.heads, at.queries, 1});
  }
  if (s.decay) {
    const Var queries = by_head(s.decay, at.key + at.keys - at.queries, at.queries);
    const Var keys = by_head(s.decay, at.key, at.keys);
    scores = scores + (reshape(queries, {s.q.heads, at.queries, 1}) -
                       reshape(keys, {s.q.heads, 1, at.keys}));
  }
  return more ? add(scores, more(shape, at.number)) : scores;
}

/// A mask [queries, keys]: 1 if the query sees the key. Without own_key, a query does not see the
/// key at its own position.
Var visible(const Var& scores, const ScoreVars& s, const Sequence& at, bool own_key) {
  std::vector<double> sees;  // the mask is the same for all heads
  for (std::int64_t t = 0; t < at.queries; ++t) {
    const std::int64_t position = at.keys - at.queries + t;
    for (std::int64_t j = 0; j < at.keys; ++j) {
      const bool before = j + (own_key ? 0 : 1) <= position;
      sees.push_back(before && (s.window == 0 || j > position - s.window) ? 1.0 : 0.0);
    }
  }
  return constant(scores, {at.queries, at.keys}, sees);
}

/// Computes P of one sequence for each rule.
struct Weighing {
  const ScoreVars& s;
  const Sequence& at;
  const AddToScores& more;

  Var operator()(const SoftmaxVars& rule) const {
    Var scores = score_matrices(s, at, s.math, more);
    if (s.window > 0) {
      std::vector<double> hidden;  // the same for all heads
      for (std::int64_t t = 0; t < at.queries; ++t) {
        for (std::int64_t j = 0; j < at.keys; ++j) {
          hidden.push_back(j > at.keys - at.queries + t - s.window ? 0.0 : 1.0);
        }
      }
      scores = where(constant(scores, {at.queries, at.keys}, hidden),
                     number_like(scores, -std::numeric_limits<double>::infinity()), scores);
    }
    if (!rule.sink) return softmax(scores, true);
    return with_sink(scores, rule.sink, at.keys - at.queries);
  }
  Var operator()(const StickBreakingVars&) const {
    const Var scores = score_matrices(s, at, s.math, more);
    return broken_sticks(scores, visible(scores, s, at, false));
  }
  Var operator()(const TraVars& rule) const {
    const Var scores = score_matrices(s, at, Math::exact, more);
    const Var pull =
        reshape(by_head(rule.count_bias, at.query, at.queries), {s.q.heads, at.queries, 1});
    return positive_alone(scores, visible(scores, s, at, true), pull);
  }
  Var operator()(const EntmaxVars&) const {
    const Var scores = score_matrices(s, at, s.math, more);
    return thresholded(scores, visible(scores, s, at, true));
  }
};

/// P of one sequence, [q.heads, queries, keys], in the master type.
Var weight_matrices(const ScoreVars& s, const Sequence& at, const RuleVars& rule,
                    const AddToScores& more = {}) {
  return std::visit(Weighing{s, at, more}, rule);
}

/// P V, where groups of query heads share a key head. p is [query heads, queries, keys], and v is
/// [key heads, keys, width].
Var weighted(const Var& p, const Var& v, std::optional<Math> math) {
  const std::int64_t heads = p.shape()[0], queries = p.shape()[1], keys = p.shape()[2];
  const std::int64_t key_heads = v.shape()[0], width = v.shape()[2];
  const Var grouped = reshape(p, {key_heads, heads / key_heads * queries, keys});
  return reshape(matmul(grouped, v, {.math = math}), {heads, queries, width});
}

/// (1 - g) (I - g P-)^-1 x for x [heads, T, columns]. Computed in the master type, because bf16
/// would keep only a few bits of 1 - g, and an error of P is multiplied by up to 1 / (1 - g).
Var chained(const Var& weights, const Var& gamma, const Var& x) {
  const DType type = gamma.value().dtype();
  const Var p = cast(weights, type), right = cast(x, type);
  const Var lower = triangle(p, false, -1);
  const Var g = of_matrices(gamma);
  const Var a = -(g * lower), b = (1.0 - g) * right;
  return cast(solve_triangular(a, b, {.unit = true}), x.value().dtype());
}

}  // namespace

Var composed_weights(const ScoreVars& s, std::int64_t sequence, const RuleVars& rule) {
  return weight_matrices(s, sequence_of(s.queries, s.keys ? s.keys : s.queries, sequence), rule);
}

Var composed_attention(const ScoreVars& s, const HeadVars& v, const RuleVars& rule,
                       const EditWeights& edit, const AddToScores& add) {
  const Segments keys = s.keys ? s.keys : s.queries;
  return each_sequence(s.q, s.queries, keys, v.width, [&](const Sequence& at) {
    Var p = weight_matrices(s, at, rule, add);
    if (edit) p = edit(p, at.number);
    return weighted(p, matrices(v, at.key, at.keys), s.math);
  });
}

Var chacal_matrix(const Var& weights, const Var& gamma) { return chained(weights, gamma, weights); }

Var chacal_inverse(const Var& weights, const Var& gamma) {
  const std::int64_t heads = weights.shape()[0], n = weights.shape()[1];
  std::vector<double> identity(static_cast<std::size_t>(weights.value().size()), 0.0);
  for (std::int64_t row = 0; row < heads * n; ++row) {
    identity[static_cast<std::size_t>(row * n + row % n)] = 1;
  }
  return chained(weights, gamma, constant(weights, weights.shape(), identity));
}

Var composed_chacal(const ScoreVars& s, const HeadVars& v, const Var& gamma,
                    const EditWeights& edit, const Var& sink) {
  const Segments keys = s.keys ? s.keys : s.queries;
  LONGHAND_CHECK(std::ranges::equal(s.queries.lengths(), keys.lengths()),
                 "composed_chacal: expected as many queries as keys in every sequence");
  return each_sequence(s.q, s.queries, keys, v.width, [&](const Sequence& at) {
    Var p = weight_matrices(s, at, SoftmaxVars{sink});
    if (edit) p = edit(p, at.number);
    return chained(p, gamma, weighted(p, matrices(v, at.key, at.keys), s.math));
  });
}

Var composed_deltaformer(const DeltaFormerVars& in) {
  const Segments keys = in.keys ? in.keys : in.queries;
  const ScoreVars s{.q = in.q,
                    .k = in.k,
                    .queries = in.queries,
                    .keys = keys,
                    .scale = in.scale,
                    .math = in.math};
  LONGHAND_CHECK(std::ranges::equal(s.queries.lengths(), keys.lengths()),
                 "composed_deltaformer: expected as many queries as keys in every sequence");
  const DType master = in.gain.value().dtype();
  return each_sequence(in.q, in.queries, keys, in.v.width, [&](const Sequence& at) {
    const std::int64_t n = at.keys;
    // The first row sees no earlier key, so its own key is not hidden. Its softmax is then defined.
    // triangle() removes this weight together with the diagonal.
    const Var p = weight_matrices(s, at, SoftmaxVars{}, [&](const Shape& shape, std::int64_t) {
      std::vector<double> hidden(static_cast<std::size_t>(shape.size()), 0.0);
      for (std::int64_t h = 0; h < s.q.heads; ++h) {
        for (std::int64_t i = 1; i < n; ++i) {
          hidden[static_cast<std::size_t>((h * n + i) * n + i)] =
              -std::numeric_limits<double>::infinity();
        }
      }
      return Var(Tensor::from(in.gain.backend(), shape, master, hidden));
    });
    const Var g = permute(slice(in.gain, at.query, n), {1, 0});
    const Var lower = triangle(cast(p, master), false, -1);
    const Var a = -(reshape(g, {s.q.heads, n, 1}) * lower);
    const Var right = cast(matrices(in.v, at.key, n), master);
    return solve_triangular(a, right, {.unit = true});
  });
}

Var composed_path(const PathVars& in) {
  const Segments keys = in.keys ? in.keys : in.queries;
  const DType master = in.beta.value().dtype();
  const double factor = 1 / std::sqrt(static_cast<double>(in.k.width));
  const MatmulOptions products{.transpose_b = true, .out = master};
  return each_sequence(in.q, in.queries, keys, in.v.width, [&](const Sequence& at) {
    const std::int64_t n = at.keys, heads = in.q.heads;
    const Var q = matrices(in.q, at.query, at.queries), k = matrices(in.k, at.key, n);
    const Var w = matrices(in.w, at.key, n);
    const Var beta = reshape(permute(slice(in.beta, at.key, n), {1, 0}), {heads, n, 1});
    // H_i ... H_(j+1) k_j = k_j - sum over j < m <= i of left_mj w_m.
    const Var between = beta * triangle(matmul(w, w, products), false, -1);
    const Var met = beta * triangle(matmul(w, k, products), false, -1);
    const Var left = solve_triangular(between, met, {.unit = true});
    std::vector<double> up_to;  // 1 where a query sees a key; the same for all heads
    for (std::int64_t t = 0; t < at.queries; ++t) {
      for (std::int64_t j = 0; j < n; ++j) up_to.push_back(j <= n - at.queries + t ? 1.0 : 0.0);
    }
    const Var seen = constant(between, {at.queries, n}, up_to) * matmul(q, w, products);
    const Var turned = matmul(seen, left, {.out = master});
    const Var p = softmax(factor * (matmul(q, k, products) - turned), true);
    return matmul(p, cast(matrices(in.v, at.key, n), master));
  });
}

Var composed_delta(const DeltaVars& in) {
  const std::int64_t heads = in.k.heads, group = in.q.heads / heads;
  const double factor = in.scale.value_or(1 / std::sqrt(static_cast<double>(in.k.width)));
  const DType master = in.beta.value().dtype();
  const MatmulOptions exact{.out = master, .math = Math::exact};
  const MatmulOptions scores{
      .transpose_b = true, .alpha = factor * factor, .out = master, .math = Math::exact};
  const Var sums = in.decay ? cumulate(in.decay, in.segments) : Var();
  return each_sequence(in.q, in.segments, in.segments, in.v.width, [&](const Sequence& at) {
    const std::int64_t n = at.keys;
    const auto of_heads = [&](const Var& x) { return permute(slice(x, at.key, n), {1, 0}); };
    const Var k = matrices(in.k, at.key, n);
    const Var v = cast(matrices(in.v, at.key, n), master);
    Var q = reshape(matrices(in.q, at.key, n), {heads, group * n, in.q.width});
    Var with_keys = matmul(k, k, scores), with_queries = matmul(q, k, scores);
    with_queries = reshape(with_queries, {heads, group, n, n});
    if (sums) {
      const Var c = of_heads(sums);
      const Var between = reshape(c, {heads, n, 1}) - reshape(c, {heads, 1, n});
      const Var kept = activate(Activation::exp, triangle(between));
      with_keys = with_keys * kept;
      with_queries = with_queries * reshape(kept, {heads, 1, n, n});
    }
    const Var beta = of_heads(in.beta);
    const Var a = triangle(with_keys, false, -1) * reshape(beta, {heads, 1, n});
    const Var error = solve_triangular(a, v, {.unit = true});
    const Var written = reshape(beta, {heads, n, 1}) * error;
    const Var seen =
        reshape(triangle(reshape(with_queries, {heads * group, n, n})), {heads, group * n, n});
    return reshape(matmul(seen, written, exact), {heads * group, n, in.v.width});
  });
}

FalResult composed_fal(const FalVars& in) {
  const Segments keys = in.keys ? in.keys : in.queries;
  const std::int64_t group = in.q.heads / in.k.heads;
  std::vector<std::int32_t> match(static_cast<std::size_t>(in.queries.tokens() * in.q.heads), -1);

  const Var y = each_sequence(in.q, in.queries, keys, in.v.width, [&](const Sequence& at) {
    const Var q =
        reshape(matrices(in.q, at.query, at.queries), {in.k.heads, group * at.queries, in.q.width});
    const Var scores =
        matmul(q, matrices(in.k, at.key, at.keys),
               {.transpose_b = true, .out = master_type(q.value().dtype()), .math = Math::exact});
    const std::vector<double> host = scores.value().to_doubles();
    std::vector<double> chosen(host.size(), 0.0);
    for (std::int64_t h = 0; h < in.q.heads; ++h) {
      for (std::int64_t t = 0; t < at.queries; ++t) {
        const std::int64_t row = (h * at.queries + t) * at.keys;
        std::int64_t m = at.keys - at.queries + t - 1;
        while (m >= 0 && !(host[static_cast<std::size_t>(row + m)] > 0)) --m;
        match[static_cast<std::size_t>((at.query + t) * in.q.heads + h)] =
            static_cast<std::int32_t>(m);
        if (m >= 0) chosen[static_cast<std::size_t>(row + m)] = 1;
      }
    }
    const Var kept = multiply(scores, constant(scores, scores.shape(), chosen));

    // Row m of `next` is v_(m+1).
    const Var v = matrices(in.v, at.key, at.keys);
    const Shape last{in.v.heads, 1, in.v.width};
    const Tensor nothing = Tensor::zeros(v.backend(), last, v.value().dtype());
    const Var next = concat({narrow(v, 1, 1, at.keys - 1), nothing}, 1);
    const Var out = matmul(kept, next, {.out = v.value().dtype(), .math = Math::exact});
    return reshape(out, {in.q.heads, at.queries, in.v.width});
  });
  return {y, Tensor::from(in.q.data.backend(), {in.queries.tokens(), in.q.heads}, match)};
}

}  // namespace longhand
