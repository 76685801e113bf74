#include "autograd/catalog/rules.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> entmax_operations() {
  return rule_operations({.name = "entmax",
                          .formula = "y_i = sum_j P_ij v_j, P_ij = [s_ij / 2 - t_i]_+^2 over j <= "
                                     "i, t_i such that a row sums to 1",
                          .vars = [](const Call&) -> RuleVars { return EntmaxVars{}; }});
}

}  // namespace

extern const Family entmax_family;
constinit const Family entmax_family{entmax_operations};

}  // namespace longhand::catalog
