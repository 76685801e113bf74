#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> sigmoid_operations() {
  return rule_operations(
      {.name = "sigmoid",
       .formula = "y_i = sum_j P_ij v_j, P_ij = sigmoid(s_ij - ln n_i) over j <= i, n_i the number "
                  "of keys that query i sees",
       .vars = [](const Call&) -> RuleVars { return SigmoidVars{}; }});
}

}  // namespace

extern const Family sigmoid_family;
constinit const Family sigmoid_family{sigmoid_operations};

}  // namespace longhand::catalog
