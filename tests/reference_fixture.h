#pragma once

#include <cmath>
#include <limits>
#include <vector>
#include "tests/check.h"

#include "core/backend.h"
#include "core/contract/elementwise.h"
#include "core/error.h"

namespace longhand {

using Values = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// A reference backend with functions that create tensors on it.
struct Reference {
  std::shared_ptr<Backend> owner = make_reference_backend();
  Backend& run = *owner;

  Tensor f64(const Shape& shape, const Values& values) const {
    return Tensor::from(run, shape, DType::f64, values);
  }
  Tensor ints(const Shape& shape, const std::vector<std::int32_t>& values) const {
    return Tensor::from(run, shape, values);
  }
  Tensor blank(const Shape& shape, DType type = DType::f64) const {
    const Tensor y(run, shape, type);
    run(Fill{.value = 77, .y = y});  // an arbitrary value that results must overwrite
    return y;
  }
};

inline void check_values(const Values& got, const Values& expected, double tolerance = 1e-13) {
  BOOST_REQUIRE_EQUAL(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const bool close = got[i] == expected[i] ||
                       std::abs(got[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i]));
    BOOST_TEST(close, "entry " << i << ": expected " << expected[i] << ", got " << got[i]);
  }
}

inline void check_values(const Tensor& y, const Values& expected, double tolerance = 1e-13) {
  check_values(y.to_doubles(), expected, tolerance);
}

/// Runs `op` three times: with a target that is overwritten, with a target filled with tens to
/// which the result is added, and without a target.
template <class Op>
void check_target(const Reference& on, Op op, Target Op::*target, const Shape& shape,
                  const Values& expected) {
  const Tensor y = on.blank(shape);
  op.*target = y;
  on.run(op);
  check_values(y, expected);

  on.run(Fill{.value = 10, .y = y});
  op.*target = Target(y, true);
  on.run(op);
  Values raised = expected;
  for (double& value : raised) value += 10;
  check_values(y, raised);

  op.*target = {};
  BOOST_CHECK_NO_THROW(on.run(op));
}

inline const Values x_values{0.5, -1.25, 2.0, 0.75, -0.3, 1.1, 0.0, -2.4};
inline const Values dy_values{1.0, -0.5, 0.25, 2.0, 0.1, 0.3, -1.0, 0.7};

}  // namespace longhand
