#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> stick_breaking_operations() {
  return rule_operations({.name = "stick",
                          .formula =
                              "y_i = sum_(j<i) P_ij v_j, P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - "
                              "sigmoid(s_im)), s_ij = tau_i scale q_i . k_j + c_i - c_j",
                          .vars = [](const Call&) -> RuleVars { return StickBreakingVars{}; },
                          // The gradient of a score s contains sigmoid(s) D, where D = dy . y. The
                          // gradient dq of a query is a sum over keys, so it contains the rounding
                          // error of D times a sum of sigmoids. A kernel processes the keys of a
                          // query until the product of all factors 1 - sigmoid(s) is below 2^-30.
                          // Until then the sigmoids sum to at most about 30 ln 2 = 20.8, because
                          // ln(1 - x) <= -x.
                          .error_terms = 21});
}

}  // namespace

extern const Family stick_breaking_family;
constinit const Family stick_breaking_family{stick_breaking_operations};

}  // namespace longhand::catalog
