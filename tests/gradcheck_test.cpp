#include "autograd/gradcheck.h"

#include <boost/test/data/test_case.hpp>
#include "tests/check.h"

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/tape.h"
#include "autograd/tolerance.h"
#include "core/contract/combine.h"
#include "core/contract/elementwise.h"
#include "core/contract/norm.h"
#include "tests/altered_backend.h"

BOOST_AUTO_TEST_SUITE(gradcheck_test)

using namespace longhand;

BOOST_AUTO_TEST_CASE(every_op_agrees_with_difference_quotients) {
  const auto reference = make_reference_backend();
  for (const catalog::Operation& operation : catalog::operations()) {
    const GradcheckResult result = gradcheck(operation, *reference);
    BOOST_TEST_CONTEXT(operation.name << " at " << result.where) {
      BOOST_TEST(result.worst < 1e-6);
      BOOST_TEST(result.bound < 1);
    }
    bool differentiable = false;
    for (const auto& input : operation.inputs) differentiable |= input.differentiable;
    BOOST_TEST_CONTEXT(operation.name) { BOOST_TEST((result.entries > 0) == differentiable); }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_derivative_is_found) {
  // The operation computes y = x^2. Its backward function wrongly multiplies by x instead of 2 x.
  catalog::Operation wrong = catalog::find("scale");
  wrong.run = [](const catalog::Call& c) -> std::vector<catalog::Output> {
    const Var x = c.in("x");
    const Tensor y = empty_like(x.value());
    y.backend()(Combine{.f = Combination::product, .a = x.value(), .b = x.value(), .y = y});
    return {{"y", record("square", {&x}, y, [x](const Tensor& dy) {
               dy.backend()(Combine{
                   .f = Combination::product, .a = dy, .b = x.value(), .y = x.sink().target()});
             })}};
  };
  const auto reference = make_reference_backend();
  BOOST_TEST(gradcheck(wrong, *reference).worst > 0.1);
}

// Tests y = x^2 at x_1 = 1000 and x_2 = 1e-5. The backward function returns x_2 instead of 2 x_2 as
// the derivative for x_2. This error of 1e-5 is only 5e-9 of the derivative for x_1, 2000.
BOOST_AUTO_TEST_CASE(a_slightly_wrong_derivative_is_found) {
  catalog::Operation square = catalog::find("scale");
  square.attributes.clear();
  square.cases = [](Rng&) { return std::vector<catalog::Case>{{{{"x", {{2}, {1000, 1e-5}}}}}}; };
  const auto with_factors = [&](double small) {
    square.run = [small](const catalog::Call& c) -> std::vector<catalog::Output> {
      const Var x = c.in("x");
      const Tensor y = empty_like(x.value());
      y.backend()(Combine{.f = Combination::product, .a = x.value(), .b = x.value(), .y = y});
      return {{"y", record("square", {&x}, y, [x, small](const Tensor& dy) {
                 std::vector<double> dx = x.value().to_doubles();
                 const std::vector<double> r = dy.to_doubles();
                 dx[0] *= 2 * r[0];
                 dx[1] *= small * r[1];
                 x.sink().add(Tensor::from(dy.backend(), dy.shape(), dy.dtype(), dx));
               })}};
    };
  };
  const auto reference = make_reference_backend();
  with_factors(2);
  BOOST_TEST(gradcheck(square, *reference).passed());
  with_factors(1);
  const GradcheckResult wrong = gradcheck(square, *reference);
  BOOST_TEST(wrong.worst < 1e-6);
  BOOST_TEST(wrong.bound > 1);
  BOOST_TEST(!wrong.passed());
}

// The broken backend multiplies the gradient of LayerNorm's gain by 1.02. This must
// be found by the checks of `longhand gradcheck --backend cpu`.
BOOST_AUTO_TEST_CASE(a_broken_backend_is_found) {
  const auto reference = make_reference_backend();
  const auto broken = make_altered_backend(make_backend("cpu"));
  broken->alter<LayerNormBackward>([](LayerNormBackward& op, const auto& run) {
    run(op);
    if (op.dgain)
      op.dgain.tensor.backend()(Scale{.x = op.dgain.tensor, .alpha = 1.02, .y = op.dgain.tensor});
  });
  const auto check = [&](const char* name) {
    return gradcheck_on(catalog::find(name), *broken, DType::f32, 0x1p-24, *reference);
  };
  BOOST_TEST(!check("layer_norm").passed());
  BOOST_TEST(check("rms_norm").passed());
}

BOOST_AUTO_TEST_CASE(a_users_own_function_is_checked) {
  const auto reference = make_reference_backend();
  const auto tripled = [](double slope) {
    return [slope](std::span<const Var> x) {
      const Var product = multiply(x[0], x[1]);
      const Tensor y = empty_like(product.value());
      y.backend()(Scale{.x = product.value(), .alpha = 3, .y = y});
      return record("tripled", {&product}, y, [slope, dx = product.sink()](const Tensor& dy) {
        dy.backend()(Scale{.x = dy, .alpha = slope, .y = dx.target()});
      });
    };
  };
  const std::vector<catalog::HostTensor> at{{{2, 2}, {1, -2, 3, 0.5}}, {{2, 2}, {4, 1, -1, 2}}};
  const GradcheckResult right = gradcheck(tripled(3), at, *reference);
  BOOST_TEST(right.passed());
  BOOST_TEST(right.entries == 8);
  BOOST_TEST(!gradcheck(tripled(3.001), at, *reference).passed());
}

BOOST_AUTO_TEST_SUITE_END()
