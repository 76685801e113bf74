#include "autograd/composed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/cumulate.h"
#include "autograd/operators.h"
#include "autograd/rearrange.h"
#include "autograd/score_matrices.h"
#include "autograd/softmax.h"
#include "autograd/triangle.h"
#include "core/contract/heads_check.h"
#include "core/error.h"

namespace longhand {

/// Calls weigh(), which computes the weights of an attention rule from the scores. The rule's file
/// in autograd/rules/ defines this function.
template <class Vars>
Var dispatch(const SequenceScores& scores, const Vars& rule) {
  Var weigh(const SequenceScores&, const Vars&);
  return weigh(scores, rule);
}

namespace {

/// Reshapes `factors`, [1] or [batch], so that a product with a tensor [batch, rows, columns]
/// broadcasts them over rows and columns.
Var of_matrices(const Var& factors) { return reshape(factors, {factors.value().size(), 1, 1}); }

/// Calls body for every sequence; body returns the outputs of this sequence, [heads, queries,
/// width]. Returns the outputs of all sequences as one tensor [query tokens, heads * width].
template <class Body>
Var each_sequence(const HeadVars& q, const Segments& queries, const Segments& keys,
                  std::int64_t width, const Body& body) {
  LONGHAND_CHECK(queries.tile(),
                 "composed attention: expected consecutive query segments, the first of which "
                 "begins at row 0");
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

/// Returns the attention weights P of one sequence, [q.heads, queries, keys], in the master type.
/// The result of the function `more`, if given, is added to the scores.
Var weight_matrices(const ScoreVars& s, const Sequence& at, const RuleVars& rule,
                    const AddToScores& more = {}) {
  if (!s.causal) {
    HeadArguments are("composed_attention", s.q.value());
    are.scores(s.value(), false);
    if (!std::holds_alternative<SoftmaxVars>(rule)) are.causal(s.value());
  }
  return std::visit([&](const auto& r) { return dispatch({s, at, more}, r); }, rule);
}

/// Returns the product P V of p [query heads, queries, keys] and v [key heads, keys, width]. Each
/// key head is shared by a group of query heads.
Var weighted(const Var& p, const Var& v, std::optional<Math> math) {
  const std::int64_t heads = p.shape()[0], queries = p.shape()[1], keys = p.shape()[2];
  const std::int64_t key_heads = v.shape()[0], width = v.shape()[2];
  const Var grouped = reshape(p, {key_heads, heads / key_heads * queries, keys});
  return reshape(matmul(grouped, v, {.math = math}), {heads, queries, width});
}

/// Returns (1 - g) (I - g P-)^-1 x for x [heads, tokens, columns], where g is gamma and P- is the
/// part of `weights` below the diagonal. All computations use the master type (f32 or f64) for two
/// reasons. bf16 would represent 1 - g by only a few bits, and the inverse multiplies an error of
/// P- by up to 1 / (1 - g).
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
                 "composed_chacal: expected equal numbers of queries and keys in every sequence");
  HeadArguments("composed_chacal", s.q.value()).causal(s.value());
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
  LONGHAND_CHECK(
      std::ranges::equal(s.queries.lengths(), keys.lengths()),
      "composed_deltaformer: expected equal numbers of queries and keys in every sequence");
  const DType master = in.gain.value().dtype();
  return each_sequence(in.q, in.queries, keys, in.v.width, [&](const Sequence& at) {
    const std::int64_t n = at.keys;
    // In DeltaFormer a query sees only the keys before its own position, so the mask hides its own
    // key. The first query is an exception: it has no earlier key, and a softmax over no keys would
    // be undefined. It therefore sees its own key, whose weight is on the diagonal, which
    // triangle() sets to 0.
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
    // For query i, PaTH applies the reflections H_m = I - beta_m w_m w_m^T of the tokens j < m <= i
    // to the key k_j. Each reflection subtracts a multiple of its vector w_m. `left` contains
    // left_mj, the coefficients of the vectors w_m in the result:
    //   H_i ... H_(j+1) k_j = k_j - sum over j < m <= i of left_mj w_m
    const Var between = beta * triangle(matmul(w, w, products), false, -1);
    const Var met = beta * triangle(matmul(w, k, products), false, -1);
    const Var left = solve_triangular(between, met, {.unit = true});
    std::vector<double> up_to;  // mask for all heads: 1 if the query sees the key, otherwise 0
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

    const Var v = matrices(in.v, at.key, at.keys);
    const Shape last{in.v.heads, 1, in.v.width};
    const Tensor nothing = Tensor::zeros(v.backend(), last, v.value().dtype());
    // Row m is the value v_(m+1). A query reads it if key m is its match, the last earlier key with
    // a positive score. The last row is 0.
    const Var next = concat({narrow(v, 1, 1, at.keys - 1), nothing}, 1);
    const Var out = matmul(kept, next, {.out = v.value().dtype(), .math = Math::exact});
    return reshape(out, {in.q.heads, at.queries, in.v.width});
  });
  return {y, Tensor::from(in.q.data.backend(), {in.queries.tokens(), in.q.heads}, match)};
}

}  // namespace longhand
