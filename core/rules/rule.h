#pragma once

#include "core/formulas.h"

/// The attention rules (docs/math/rules.md). A rule computes the weights of the keys from the
/// scores of a query. Each file of this folder defines one rule as a struct of function templates.
/// These templates are used with double (the reference backend), with float (CUDA) and with SIMD
/// vectors of queries (the CPU backend). For SIMD vectors, exp2, min and select are found by
/// argument-dependent lookup. Each rule has the members
///   own_key: false if a query does not see the key at its own position;
///   leftward: true if the keys of a query are processed from the last to the first;
///   exact_scores: true if the products q . k are computed in f32 in every math mode;
///   unit: the factor by which scores are multiplied before the rule's formulas are applied.
namespace longhand::rules {

inline constexpr double ln_of_2 = 0.69314718055994530942;
/// 1 / ln 2. Rules that compute powers of two multiply each score s by this factor, because
/// e^s = 2^(s per_bit).
inline constexpr float per_bit = 1.44269504088896340736f;

}  // namespace longhand::rules
