#include "autograd/chacal.h"

#include <cmath>
#include "tests/check.h"

#include "autograd/composed_attention.h"
#include "tests/head_problem.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(chacal_test)

using namespace longhand;

namespace {

Tensor number(Backend& backend, double value, DType type) {
  return Tensor::from(backend, {1}, type, std::vector<double>{value});
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_the_docs_is_right) {
  const auto backend = make_reference_backend();
  const Segments four(*backend, std::vector<std::int32_t>{4});
  const ScoreVars s{
      .q = {Var(column(*backend, {1, 1, 1, 1})), 0, 1, 1},
      .k = {Var(column(*backend, {0, std::log(2), std::log(3), std::log(4)})), 0, 1, 1},
      .queries = four,
      .scale = 1};
  const HeadVars v{Var(column(*backend, {6, 0, 6, 10}), true), 0, 1, 1};
  const Var gamma(number(*backend, 0.5, DType::f64), true);
  Tape tape;
  const Var y = recorded(tape, [&] { return chacal(s, v, gamma); });
  const auto close = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      BOOST_TEST(std::abs(got[i] - expected[i]) < 1e-12, got[i] << " is not " << expected[i]);
    }
  };
  close(y.value().to_doubles(), {3, 1.5, 2.5, 3.875});
  tape.backward(y, column(*backend, {0, 0, 0, 1}));
  close(v.data.grad().to_doubles(), {1.0 / 8, 1.0 / 6, 3.0 / 16, 1.0 / 5});
  close(gamma.grad().to_doubles(), {-6.125});
}

BOOST_AUTO_TEST_CASE(gamma_zero_is_softmax_attention_bit_for_bit) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    for (const auto& [heads, key_heads, width] :
         {std::array<std::int64_t, 3>{1, 1, 16}, {4, 2, 5}, {2, 2, 64}, {1, 1, 130}}) {
      const HeadProblem p(*backend, DType::f32, {150, 1, 33, 64}, heads, key_heads, width, width);
      const auto softmax = attention(p.scores(), p.values()).value().to_doubles();
      const auto chained =
          chacal(p.scores(), p.values(), number(*backend, 0, DType::f32)).value().to_doubles();
      BOOST_TEST_CONTEXT(name << ", width " << width) { BOOST_TEST((softmax == chained)); }
      const auto other =
          chacal(p.scores(), p.values(), number(*backend, 0.5, DType::f32)).value().to_doubles();
      BOOST_TEST((softmax != other));
    }
  }
}

BOOST_AUTO_TEST_CASE(gamma_near_one_stays_finite) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    for (const double g : {0.99, 0.9999, 0.999999, 1.0}) {
      const HeadProblem p(*backend, DType::f32, {300, 17}, 2, 2, 16, 16, 5, 2);
      const ScoreVars s = p.scores(true);
      const HeadVars v = p.values(true);
      const Var gamma(number(*backend, g, DType::f32), true);
      Tape tape;
      const Var y = recorded(tape, [&] { return chacal(s, v, gamma); });
      tape.backward(y, p.q);
      double largest = 0;
      for (const double value : p.v.to_doubles()) largest = std::max(largest, std::abs(value));
      for (const double value : y.value().to_doubles()) {
        // y is a weighted mean of the values v, so its entries cannot exceed the largest value.
        BOOST_REQUIRE(std::abs(value) <= largest * 1.0001);
      }
      for (const Tensor& x : {s.q.data.grad(), s.k.data.grad(), v.data.grad(), gamma.grad()}) {
        for (const double value : x.to_doubles()) BOOST_REQUIRE(std::isfinite(value));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(bf16_keeps_the_share_1_minus_gamma) {
  // All outputs and gradients of ChaCAL have the factor 1 - gamma. If it were computed from gamma
  // rounded to bf16, it would have an error of 2% for gamma = 0.9, and would be 0 for 0.999.
  const auto reference = make_reference_backend(), backend = make_backend("cpu");
  const std::vector<std::int32_t> lengths{24, 1, 40};
  for (const bool composed : {false, true}) {
    for (const double g : {0.9, 0.99, 0.999}) {
      const auto results = [&](Backend& on, DType type) {
        const auto rounded = [&](const Tensor& x) {
          std::vector<double> values = x.to_doubles();
          for (double& value : values) value = static_cast<float>(bf16(static_cast<float>(value)));
          return Tensor::from(on, x.shape(), type, values);
        };
        HeadProblem p(*reference, DType::f64, lengths, 2, 2, 8, 8, 3);
        p.segments = Segments(on, lengths);
        for (Tensor* x : {&p.q, &p.k, &p.v}) *x = rounded(*x);
        const ScoreVars s = p.scores(true);
        const HeadVars v = p.values(true);
        const Var gamma(number(on, g, master_type(type)), true);
        Tape tape;
        const Var y = recorded(
            tape, [&] { return composed ? composed_chacal(s, v, gamma) : chacal(s, v, gamma); });
        tape.backward(y, p.q);
        return std::vector<std::vector<double>>{
            y.value().to_doubles(), s.q.data.grad().to_doubles(), s.k.data.grad().to_doubles(),
            v.data.grad().to_doubles(), gamma.grad().to_doubles()};
      };
      const auto expected = results(*reference, DType::f64), got = results(*backend, DType::bf16);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        double product = 0, square = 0, error = 0;
        for (std::size_t j = 0; j < expected[i].size(); ++j) {
          product += got[i][j] * expected[i][j];
          square += expected[i][j] * expected[i][j];
          error += std::pow(got[i][j] - expected[i][j], 2);
        }
        BOOST_TEST_CONTEXT((composed ? "composed" : "fused")
                           << ", gamma " << g << ", result " << i) {
          BOOST_TEST(std::abs(product / square - 1) < 0.005);
          BOOST_TEST(std::sqrt(error / square) < 0.02);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(entries_of_the_attention_matrix_are_between_zero_and_one) {
  // g is gamma, and P- is the part of P below the diagonal. For the matrix
  //   R = (1 - g) (I - g P-)^-1,
  // all entries and row sums of R and of R P must be between 0 and 1. In the row-sum norm, the
  // condition number of I - g P- must be at most (1 + g) / (1 - g).
  const auto backend = make_reference_backend();
  constexpr std::int64_t n = 60;
  for (const double g : {0.0, 0.5, 0.9, 0.99}) {
    const HeadProblem p(*backend, DType::f64, {n}, 2, 2, 8, 8, 7, 2);
    const Tensor weights = attention_weights(p.scores());
    const Var gamma = number(*backend, g, DType::f64);
    const auto rows = [&](const Var& x, auto check) {
      const std::vector<double> values = x.value().to_doubles();
      for (std::size_t row = 0; row < 2 * n; ++row) {
        double sum = 0;
        for (std::size_t j = 0; j < n; ++j) {
          const double entry = values[row * n + j];
          BOOST_REQUIRE(entry >= 0);
          BOOST_REQUIRE(entry <= 1 + 1e-12);
          sum += entry;
        }
        check(sum);
      }
    };
    const Var p3(weights.reshape({2, n, n}));
    rows(chacal_matrix(p3, gamma), [&](double sum) { BOOST_REQUIRE(sum <= 1 + 1e-12); });
    const Var inverse = chacal_inverse(p3, gamma);
    rows(inverse, [&](double sum) { BOOST_REQUIRE(sum <= 1 + 1e-12); });

    double norm = 0, inverse_norm = 0;
    const std::vector<double> w = weights.to_doubles(), r = inverse.value().to_doubles();
    for (std::size_t row = 0; row < 2 * n; ++row) {
      double a = 1, b = 0;
      for (std::size_t j = 0; j < n; ++j) {
        if (j < row % n) a += g * w[row * n + j];
        b += r[row * n + j] / (1 - g);
      }
      norm = std::max(norm, a);
      inverse_norm = std::max(inverse_norm, b);
    }
    BOOST_TEST(norm * inverse_norm <= (1 + g) / (1 - g) * (1 + 1e-12));
    BOOST_TEST(norm * inverse_norm >= 1);
  }
}

BOOST_AUTO_TEST_SUITE_END()
