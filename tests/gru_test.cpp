#include "autograd/gru.h"

#include <cmath>

#include "autograd/gradcheck.h"
#include "nn/layers/gru.h"
#include "tests/check.h"
#include "tests/random_tensor.h"
#include "tests/refusal.h"

// Tests the GRU operation against plain loops, the layer GRU, and the refusal of invalid arguments.
// Other tests check its parity between backends, and that wrong implementations (mutants) are
// detected.
BOOST_AUTO_TEST_SUITE(gru_test)

using namespace longhand;

namespace {

using Doubles = std::vector<double>;
using Lengths = std::vector<std::int32_t>;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// The GRU in plain loops, which compute one entry after another.
Doubles plain_gru(const Doubles& x, const Lengths& lengths, const Doubles& u, const Doubles& bias) {
  const std::size_t n = bias.size();
  Doubles y;
  std::size_t row = 0;
  for (const std::int32_t length : lengths) {
    Doubles h(n, 0.0);
    for (std::int32_t t = 0; t < length; ++t, ++row) {
      Doubles next(n);
      for (std::size_t j = 0; j < n; ++j) {
        double of_h[3] = {0, 0, 0};
        for (std::size_t part = 0; part < 3; ++part) {
          for (std::size_t k = 0; k < n; ++k) of_h[part] += u[(part * n + j) * n + k] * h[k];
        }
        const double* const at = &x[row * 3 * n + j];
        const double r = sigmoid_of(at[0] + of_h[0]), z = sigmoid_of(at[n] + of_h[1]);
        const double fresh = std::tanh(at[2 * n] + r * (of_h[2] + bias[j]));
        next[j] = (1 - z) * fresh + z * h[j];
      }
      h = next;
      y.insert(y.end(), h.begin(), h.end());
    }
  }
  return y;
}

}  // namespace

BOOST_AUTO_TEST_CASE(sequences_of_any_lengths_equal_a_plain_loop) {
  const auto backend = make_reference_backend();
  for (const Lengths& lengths : {Lengths{1}, Lengths{3, 0, 7, 7, 1}, Lengths{}}) {
    const Segments segments(*backend, lengths);
    const Tensor x = random_tensor(*backend, {segments.tokens(), 12}, DType::f64, 1);
    const Tensor u = random_tensor(*backend, {12, 4}, DType::f64, 2, 0.7);
    const Tensor bias = random_tensor(*backend, {4}, DType::f64, 3);
    const Doubles got = gru(x, segments, u, bias).value().to_doubles();
    const Doubles expected = plain_gru(x.to_doubles(), lengths, u.to_doubles(), bias.to_doubles());
    BOOST_REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) BOOST_TEST(std::abs(got[i] - expected[i]) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(the_layer_computes_the_parts_from_its_input) {
  const auto backend = make_reference_backend();
  nn::Parameters parameters(*backend, {DType::f64}, 1);
  const nn::Gru layer(nn::Scope(parameters) / "gru", 5, 2);
  const Lengths lengths{4, 2};
  const Segments segments(*backend, lengths);
  for (const nn::Parameter& p : parameters.all()) fill_random(p.value(), p.name().size());
  const Tensor x = random_tensor(*backend, {6, 5}, DType::f64, 4);
  const Doubles got = layer(x, segments).value().to_doubles();
  const Doubles expected = plain_gru(layer.input(x).value().to_doubles(), lengths,
                                     layer.u.value().to_doubles(), layer.bias.value().to_doubles());
  BOOST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) BOOST_TEST(std::abs(got[i] - expected[i]) < 1e-14);

  const auto of_x = [&](std::span<const Var> at) { return layer(at[0], segments); };
  Rng rng(5, Purpose::test);
  BOOST_TEST(gradcheck(of_x, {catalog::normals(rng, {6, 5})}, *backend).passed());
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  const auto backend = make_reference_backend();
  const auto make = [&](const Shape& shape) {
    return Var(Tensor::zeros(*backend, shape, DType::f64));
  };
  const Segments three(*backend, Lengths{3});
  const auto with = [&](const Shape& x, const Shape& u, const Shape& bias) {
    return refusal([&] { gru(make(x), three, make(u), make(bias)); });
  };
  BOOST_TEST(
      with({3, 8}, {6, 2}, {2}) ==
      "gru: x: expected a matrix whose number of columns is a positive multiple of 3, got [3, 8]");
  BOOST_TEST(with({3, 6}, {6, 3}, {2}) == "gru: u: expected [6, 2], got [6, 3]");
  BOOST_TEST(with({3, 6}, {6, 2}, {6}) == "gru: bias: expected [2], got [6]");
  BOOST_TEST(
      with({4, 6}, {6, 2}, {2}) ==
      "gru: segments: expected consecutive segments that cover all 4 rows of x, got segments of 3 "
      "rows in total");
}

BOOST_AUTO_TEST_SUITE_END()
