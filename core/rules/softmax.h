#pragma once

#include "core/rules/rule.h"

namespace longhand::rules {

/// Softmax: P = 2^(x - m) / sum of 2^(x - m), where x is the score times `per_bit` (1 / ln 2), and
/// m is the largest x of the row.
struct Softmax {
  static constexpr bool own_key = true, leftward = false, exact_scores = false;
  static constexpr float unit = per_bit;
};

}  // namespace longhand::rules
