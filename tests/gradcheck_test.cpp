#include "autograd/gradcheck.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "autograd/tape.h"

using namespace longhand;

BOOST_AUTO_TEST_SUITE(gradcheck_test)

BOOST_AUTO_TEST_CASE(every_op_agrees_with_difference_quotients) {
  const auto reference = make_reference_backend();
  for (const catalog::Operation& operation : catalog::operations()) {
    const GradcheckResult result = gradcheck(operation, *reference);
    BOOST_TEST_CONTEXT(operation.name << " at " << result.where) {
      BOOST_TEST(result.worst < 1e-6);
    }
    bool differentiable = false;
    for (const auto& input : operation.inputs) differentiable |= input.differentiable;
    BOOST_TEST_CONTEXT(operation.name) { BOOST_TEST((result.entries > 0) == differentiable); }
  }
}

BOOST_AUTO_TEST_CASE(a_wrong_derivative_is_found) {
  // y = x^2 with the derivative of a forgetful student: x.
  catalog::Operation wrong = catalog::find("scale");
  wrong.run = [](const catalog::Call& c) -> std::vector<catalog::Output> {
    const Var x = c.in("x");
    const Tensor y = empty_like(x.value());
    y.backend()(Multiply{.a = x.value(), .b = x.value(), .y = y});
    return {{"y", record("square", {&x}, y, [x](const Tensor& dy) {
               dy.backend()(Multiply{.a = dy, .b = x.value(), .y = x.sink().target()});
             })}};
  };
  const auto reference = make_reference_backend();
  BOOST_TEST(gradcheck(wrong, *reference).worst > 0.1);
}

BOOST_AUTO_TEST_SUITE_END()
