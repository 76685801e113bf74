#pragma once

#include <optional>

#include "autograd/attention.h"
#include "autograd/catalog/catalog.h"

/// The operations of an attention rule other than softmax, such as entmax. Each rule has three: the
/// fused attention, the same attention composed of other operations, and the weights P alone. One
/// set of functions creates the test cases of all rules.
namespace longhand::catalog {

struct DescribedRule {
  std::string name, formula;
  RuleVars (*vars)(const Call& call);
  std::optional<Argument> input = {};  // the input that only this rule has, if any
  // True if keys whose score is not positive have no weight. Test cases then have no scores near 0,
  // where rounding changes their sign, and scores are computed in f32 in every math mode.
  bool by_sign = false;
  double error_terms = 1;  // Operation::error_terms of the fused operation
};

std::vector<Operation> rule_operations(const DescribedRule& rule);

}  // namespace longhand::catalog
