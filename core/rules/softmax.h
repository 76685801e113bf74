#pragma once

#include "core/rules/rule.h"

namespace longhand::rules {

/// Softmax: P = 2^(s - m) / sum of 2^(s - m), where m is the largest score of the row.
struct Softmax {
  static constexpr bool own_key = true, leftward = false, exact_scores = false;
  static constexpr float unit = per_bit;
};

}  // namespace longhand::rules
