#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> tra_operations() {
  return rule_operations(
      {.name = "tra",
       .formula = "y_i = sum_j P_ij v_j, P = softmax over the j <= i with s_ij > 0, n_ij of them "
                  "from j to i, of s_ij + pull_i n_ij",
       .vars = [](const Call& call) -> RuleVars { return TraVars{call.in("pull")}; },
       .input = Argument{"pull", "[tokens, heads]: added for each positive key", Role::master},
       .by_sign = true});
}

}  // namespace

extern const Family tra_family;
constinit const Family tra_family{tra_operations};

}  // namespace longhand::catalog
