// Tests formulas typed by users, and the check that decides whether a typed derivative of a formula
// is right.
#include "apps/expression.h"

#include <cmath>

#include "apps/derivative_check.h"
#include "core/rng.h"
#include "tests/program.h"

namespace expression_test {

using namespace longhand;
using namespace longhand::app;

double value_of(const std::string& formula, double x = 0, double y = 0) {
  return Expression(formula)({{"x", x}, {"y", y}});
}

bool is_right(const std::string& f, const std::string& d, const std::string& by = "x",
              double low = -3, double high = 3) {
  return check_derivative(Expression(f), by, Expression(d), low, high, 1).right();
}

}  // namespace expression_test

BOOST_FIXTURE_TEST_SUITE(expression_test, Program)

using namespace expression_test;

BOOST_AUTO_TEST_CASE(formulas_have_the_right_values) {
  BOOST_TEST(value_of("1 + 2*3 - 4/8") == 6.5);
  BOOST_TEST(value_of("2^3^2") == 512.0);
  BOOST_TEST(value_of("-2^2") == -4.0);
  BOOST_TEST(value_of("2^-1") == 0.5);
  BOOST_TEST(value_of("8/4/2 - 3 - 2") == -4.0);
  BOOST_TEST(value_of("(x + y)*(x - y)", 5, 3) == 16.0);
  BOOST_TEST(value_of("max(x, min(y, 2)) + abs(-1)", 1, 7) == 3.0);
  BOOST_TEST(value_of("cos(pi)") == -1.0);
  BOOST_TEST(value_of("log(e)") == 1.0);
  BOOST_TEST(value_of("1.5e2 + .5") == 150.5);
  BOOST_TEST(std::isnan(value_of("log(-1)")));
  BOOST_TEST((Expression("x*sin(rate)").variables() == std::set<std::string>{"rate", "x"}));
}

BOOST_AUTO_TEST_CASE(a_broken_formula_is_refused_with_the_position) {
  const auto says = [](const std::string& formula, const char* words) {
    BOOST_TEST(contains(refusal([&] { Expression{formula}; }), words));
  };
  says("", "at character 1, got the end");
  says("x +", "at character 4");
  says("2x", "expected an operator, such as * after a number at character 2");
  says("x y", "expected an operator at character 3");
  says("(x", "expected ')'");
  says("sin x", "expected '(' after sin");
  says("sni(x)", "did you mean sin?");
  says("max(x)", "expected ','");
  says("x; rm", "at character 2");
  says(std::string(5000, '1'), "at most 4096");
  says(std::string(2000, '('), "expected a nesting of at most 100 levels");
  says(std::string(2000, '-') + "x", "expected a nesting of at most 100 levels");
  BOOST_TEST(value_of(std::string(300, '1')) > 1e299);
  // This number exceeds the range of double.
  says(std::string(400, '1'), "expected a number at character 1");
}

BOOST_AUTO_TEST_CASE(random_text_is_parsed_or_refused) {
  Rng rng(5, Purpose::test);
  const std::string letters = "x1.e+-*/^(), sincoxpmay";
  for (int i = 0; i < 20'000; ++i) {
    std::string formula;
    for (std::uint32_t n = rng.below(24); n > 0; --n) {
      formula += letters[rng.below(static_cast<std::uint32_t>(letters.size()))];
    }
    refusal([&] { Expression{formula}({{"x", 0.5}}); });
  }
}

BOOST_AUTO_TEST_CASE(right_derivatives_pass_and_wrong_ones_fail) {
  BOOST_TEST(is_right("x^3", "3*x^2"));
  BOOST_TEST(is_right("x*sin(x)", "sin(x) + x*cos(x)"));
  BOOST_TEST(is_right("log(x)", "1/x"));  // x is drawn from positive numbers only
  BOOST_TEST(is_right("abs(x)", "sign(x)"));
  BOOST_TEST(is_right("tanh(x)", "1 - tanh(x)^2"));
  BOOST_TEST(is_right("silu(x)", "sigmoid(x)*(1 + x*(1 - sigmoid(x)))"));
  BOOST_TEST(is_right("gelu(x)", "0.5*(1 + erf(x/sqrt(2))) + x*exp(-x^2/2)/sqrt(2*pi)"));
  BOOST_TEST(is_right("x^2*exp(y)", "x^2*exp(y)", "y"));
  BOOST_TEST(is_right("1e6*x^2 + x", "2e6*x + 1"));
  BOOST_TEST(!is_right("x^3", "3*x^2 + 1e-5"));
  BOOST_TEST(!is_right("x*sin(x)", "cos(x)"));
  BOOST_TEST(!is_right("x^2", "1/0"));
  BOOST_TEST(!is_right("exp(x)", "log(x)"));
  BOOST_TEST(contains(refusal([] { is_right("log(-1-x^2)", "x"); }), "choose another range"));
  const auto hint = [](const char* f, const char* d) {
    return check_derivative(Expression(f), "x", Expression(d), -3, 3, 1).hint;
  };
  BOOST_TEST(hint("cos(x)", "sin(x)") == "the typed one is the negative of the right one");
  BOOST_TEST(hint("x^2", "x") == "the typed one is the right one divided by 2");
  BOOST_TEST(hint("x^2", "4*x") == "the typed one is 2 times the right one");
  BOOST_TEST(hint("x^2", "x^2") == "");
}

BOOST_AUTO_TEST_CASE(a_wrong_derivative_is_shown_with_numbers) {
  const auto right = (*this)("gradcheck --expression 'x*sin(x)' --derivative 'sin(x)+x*cos(x)'");
  BOOST_TEST(right.status == 0);
  BOOST_TEST(contains(right.out, "right: d(x*sin(x))/dx = sin(x)+x*cos(x)"));
  const auto wrong = (*this)("gradcheck --expression 'x*sin(x)' --derivative 'cos(x)'");
  BOOST_TEST(wrong.status == 1);
  BOOST_TEST(contains(wrong.out, "wrong"));
  BOOST_TEST(contains(wrong.err, "the derivative with respect to x is wrong at 12 of 12 points"));
  const Json facts = json("gradcheck --expression 'x*y^2' --derivative '2*x*y' --by y --json");
  BOOST_TEST(facts["right"].boolean());
  BOOST_TEST(facts["rows"].size() == 12u);
  BOOST_TEST(facts["rows"][0]["at x"].is_number());
  refuses(2, "gradcheck --expression 'x*y' --derivative y", "--by");
  refuses(2, "gradcheck --expression 'x*y' --derivative y --by z", "--by");
  refuses(2, "gradcheck --expression 'x' --derivative z", "--derivative");
  refuses(2, "gradcheck --expression '2x' --derivative 2", "--expression");
  refuses(2, "gradcheck --expression x", "longhand gradcheck: --derivative is missing");
  refuses(2, "gradcheck --derivative x", "--expression");
  refuses(2, "gradcheck matmul --expression x --derivative 1", "names of ops");
  refuses(2, "gradcheck --expression x --derivative 1 --from 3 --to 2", "--to");
}

BOOST_AUTO_TEST_SUITE_END()
