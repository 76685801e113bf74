#pragma once

#include <numeric>
#include <vector>

#include "autograd/chacal.h"
#include "autograd/fal.h"
#include "core/backend.h"
#include "core/rng.h"

/// Random queries, keys and values for tests of attention and related operations, such as FAL.
namespace longhand {

struct HeadProblem {
  Tensor q, k, v;
  Segments segments;
  std::int64_t heads, key_heads;

  HeadProblem(Backend& backend, DType type, const std::vector<std::int32_t>& lengths,
              std::int64_t query_heads, std::int64_t shared_heads, std::int64_t width,
              std::int64_t v_width, std::uint64_t seed = 1, double deviation = 1)
      : segments(backend, lengths), heads(query_heads), key_heads(shared_heads) {
    Rng rng(seed, Purpose::test);
    const std::int64_t tokens = segments.tokens();
    const auto normal = [&](std::int64_t columns) {
      std::vector<double> values(static_cast<std::size_t>(tokens * columns));
      for (double& value : values) value = deviation * rng.normal();
      return Tensor::from(backend, {tokens, columns}, type, values);
    };
    q = normal(heads * width);
    k = normal(key_heads * width);
    v = normal(key_heads * v_width);
  }

  ScoreVars scores(bool gradients = false) const {
    return {.q = all_columns(Var(q, gradients), heads),
            .k = all_columns(Var(k, gradients), key_heads),
            .queries = segments};
  }
  HeadVars values(bool gradients = false) const {
    return all_columns(Var(v, gradients), key_heads);
  }
  FalVars fal(bool gradients = false) const {
    const ScoreVars s = scores(gradients);
    return {.q = s.q, .k = s.k, .v = values(gradients), .queries = segments};
  }
};

inline Tensor column(Backend& backend, const std::vector<double>& values) {
  return Tensor::from(backend, {static_cast<std::int64_t>(values.size()), 1}, DType::f64, values);
}

}  // namespace longhand
