#pragma once

#include <optional>

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// The operations of an attention rule other than softmax: the fused one, the composed one and the
/// weights. Their cases are the same for all rules.
namespace longhand::catalog {

struct DescribedRule {
  std::string name, formula;
  RuleVars (*vars)(const Call& call);
  std::optional<Argument> input = {};  // the rule's own input
  // True if a key has a weight only if its score is positive. No case then has scores near 0, where
  // rounding changes their sign, and scores are computed in f32 in every math mode.
  bool by_sign = false;
  double error_terms = 1;  // Operation::error_terms of the fused operation
};

std::vector<Operation> rule_operations(const DescribedRule& rule);

}  // namespace longhand::catalog
