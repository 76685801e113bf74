#pragma once

#include <optional>

#include "autograd/heads.h"
#include "core/contract/attention.h"

/// Differentiable forms of core/contract/attention.h.
namespace longhand {

/// Scores of queries and keys with gradients to q, k and beta.
struct ScoreVars {
  HeadVars q, k;
  Segments queries;
  Segments keys = {};                // empty: the queries'
  std::optional<double> scale = {};  // none: 1 / sqrt(width)
  Temper temper = Temper::none;
  Var beta = {};
  std::int64_t window = 0;
  std::optional<Math> math = {};

  Scores value() const;
};

/// [query tokens, q.heads * v.width]
Var attention(const ScoreVars& scores, const HeadVars& v);
HeadsBackward attention_into(const ScoreVars& scores, const HeadVars& v, const Heads& y);

/// P itself, T x T: see AttentionWeights.
Tensor attention_weights(const ScoreVars& scores);
Tensor attention_weights(const Scores& scores);

/// When the backend is checked: an Error that names the first score that is NaN or infinite.
void check_scores(std::string_view op, const Scores& scores);

}  // namespace longhand
