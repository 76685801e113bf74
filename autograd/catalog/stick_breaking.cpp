#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> stick_breaking_operations() {
  return rule_operations({.name = "stick",
                          .formula =
                              "y_i = sum_(j<i) P_ij v_j, P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - "
                              "sigmoid(s_im)), s_ij = tau_i scale q_i . k_j + c_i - c_j",
                          .vars = [](const Call&) -> RuleVars { return StickBreakingVars{}; },
                          // dS of each key contains sigmoid(s) times the rounding error of D. A row
                          // ends when less than 2^-30 of its weight is left, so sigmoid(s) sums to
                          // at most about 30 ln 2 = 20.8 in a row.
                          .error_terms = 21});
}

}  // namespace

extern const Family stick_breaking_family;
constinit const Family stick_breaking_family{stick_breaking_operations};

}  // namespace longhand::catalog
