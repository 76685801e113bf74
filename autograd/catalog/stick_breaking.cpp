#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> stick_breaking_operations() {
  return rule_operations({.name = "stick",
                          .formula =
                              "y_i = sum_(j<i) P_ij v_j, P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - "
                              "sigmoid(s_im)), s_ij = tau_i scale q_i . k_j + c_i - c_j",
                          .vars = [](const Call&) -> RuleVars { return StickBreakingVars{}; },
                          // Let D = dy . y for a query. The gradient of each of its scores s
                          // contains sigmoid(s) times the rounding error of D. A kernel processes
                          // the keys of a query until the product of all factors 1 - sigmoid(s) is
                          // below 2^-30. Until then the sigmoids sum to at most about 30 ln 2 =
                          // 20.8, because ln(1 - x) <= -x.
                          .error_terms = 21});
}

}  // namespace

extern const Family stick_breaking_family;
constinit const Family stick_breaking_family{stick_breaking_operations};

}  // namespace longhand::catalog
