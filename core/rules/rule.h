#pragma once

#include "core/formulas.h"

/// The attention rules, which compute the weights of the keys from the scores of a query:
/// docs/math/rules.md. Each file of this folder defines one rule as a struct of templates on the
/// value type. The same code runs on double (the reference backend), on float (CUDA) and on vectors
/// of queries (the CPU backend), whose exp2, min and select are found by argument-dependent lookup.
/// A rule has
///   own_key       false: a query sees only the keys before its own position
///   leftward      the keys of a query are processed from the nearest to the first
///   exact_scores  scores are f32 products in every math mode
///   unit          the factor by which scores are multiplied before the rule's formulas
namespace longhand::rules {

inline constexpr double ln_of_2 = 0.69314718055994530942;
/// The unit of scores in bits, s / ln 2, for rules that compute powers of two.
inline constexpr float per_bit = 1.44269504088896340736f;

}  // namespace longhand::rules
