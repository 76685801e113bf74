#pragma once

#include <functional>
#include <string_view>
#include <vector>
#include "tests/check.h"

#include "autograd/tolerance.h"

namespace longhand {

/// Compares a fused operation of the catalog with `composed_run`, which computes the same by other
/// operations. Compares the results and every gradient of all cases, in f64.
inline void check_composed(
    std::string_view name,
    const std::function<std::vector<catalog::Output>(const catalog::Call&)>& composed_run) {
  const auto reference = make_reference_backend();
  const catalog::Operation& fused = catalog::find(name);
  catalog::Operation composed = fused;
  composed.run = composed_run;
  Rng rng(11, Purpose::test);
  for (const catalog::Case& values : fused.cases(rng)) {
    const auto comparison = tolerance::Standard(composed, {values}, *reference)
                                .compare(DType::f64, 0x1p-53, [&](const auto&, const auto&) {
                                  return tolerance::run(fused, values, *reference, DType::f64);
                                });
    BOOST_TEST_CONTEXT(comparison.where) { BOOST_TEST(comparison.used <= 1.0); }
  }
}

}  // namespace longhand
