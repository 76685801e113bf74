#include "nn/module.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>
#include "tests/check.h"

#include "core/error.h"
#include "core/rng.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/linear.h"
#include "nn/layers/norm.h"
#include "nn/normal.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(module_test)

using namespace longhand;
using namespace longhand::nn;

namespace {
struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Parameters parameters{*backend, {DType::f32}, 7};
};
}  // namespace

BOOST_AUTO_TEST_CASE(initial_bf16_matrices_equal_rounded_f32_matrices) {
  const auto backend = make_cpu_backend({.threads = 2});
  Parameters wide(*backend, {DType::f32}, 7), narrow(*backend, {.matrices = DType::bf16}, 7);
  for (Parameters* each : {&wide, &narrow}) {
    // A matrix of this size is uploaded in several pieces.
    each->add("w", {700, 400}, normal(0.02), true);
    each->add("adds", {3, 4}, normal(1), true, true);
  }
  const auto f32 = wide.all()[0].value().to_doubles(), bf = narrow.all()[0].value().to_doubles();
  for (std::size_t i = 0; i < f32.size(); ++i) {
    BOOST_REQUIRE(bf[i] == static_cast<float>(bf16(static_cast<float>(f32[i]))));
  }
  BOOST_TEST((narrow.all()[1].value().dtype() == DType::f32));
  BOOST_TEST(narrow.all()[1].value().to_doubles() == wide.all()[1].value().to_doubles(),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(names_follow_the_scopes, Fixture) {
  const Scope layer = Scope(parameters) / "model" / "layers" / 3;
  const Linear linear(layer / "dense", 2, 5, true, normal(0.02));
  BOOST_REQUIRE(parameters.all().size() == 2u);
  BOOST_TEST(parameters.all()[0].name() == "model.layers.3.dense.weight");
  BOOST_TEST(parameters.all()[1].name() == "model.layers.3.dense.bias");
  BOOST_TEST(parameters.all()[0].value().shape() == Shape({5, 2}));
  BOOST_TEST(parameters.all()[0].decays());
  BOOST_TEST(!parameters.all()[1].decays());
  BOOST_TEST(parameters.count() == 15);
  BOOST_TEST(parameters.find("model.layers.3.dense.bias") == &parameters.all()[1]);
  BOOST_TEST(!parameters.find("model.layers.3.dense"));
  BOOST_CHECK_THROW(Linear(layer / "dense", 2, 5, true, normal(0.02)), Error);
}

BOOST_FIXTURE_TEST_CASE(a_frozen_parameter_is_frozen_in_every_use, Fixture) {
  const Linear linear(Scope(parameters), 2, 5, false, normal(0.02));
  parameters.all()[0].freeze();
  BOOST_TEST(!linear.weight.var().wants_grad());
  parameters.all()[0].freeze(false);
  BOOST_TEST(linear.weight.var().wants_grad());
}

BOOST_FIXTURE_TEST_CASE(initial_values_depend_only_on_name_and_seed, Fixture) {
  const auto values = [&](std::uint64_t seed, std::vector<std::string> names) {
    Parameters some(*backend, {DType::f32}, seed);
    for (const auto& name : names) some.add(name, {3, 4}, normal(1), true);
    return some.all().back().value().to_doubles();
  };
  BOOST_TEST(values(7, {"w"}) == values(7, {"a", "b", "w"}));
  BOOST_TEST(values(7, {"w"}) != values(8, {"w"}));
  BOOST_TEST(values(7, {"w"}) != values(7, {"v"}));
}

BOOST_FIXTURE_TEST_CASE(initial_values_are_normal, Fixture) {
  // Random numbers are drawn in chunks of 2^14. The test draws three chunks and a part of a fourth.
  const std::int64_t n = 50'001;
  const auto x = parameters.add("w", {n}, {.mean = 3, .deviation = 0.5}, true).value().to_doubles();
  // The first four moments of (x - 3) / 0.5 must differ from those of the normal distribution by
  // less than five standard errors.
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (const double value : x) {
    const double u = (value - 3) / 0.5;
    m1 += u / static_cast<double>(n);
    m2 += u * u / static_cast<double>(n);
    m3 += u * u * u / static_cast<double>(n);
    m4 += u * u * u * u / static_cast<double>(n);
  }
  const double error = 5 / std::sqrt(static_cast<double>(n));
  BOOST_TEST(std::abs(m1) < error);
  BOOST_TEST(std::abs(m2 - 1) < error * std::sqrt(2.0));
  BOOST_TEST(std::abs(m3) < error * std::sqrt(15.0));
  BOOST_TEST(std::abs(m4 - 3) < error * std::sqrt(96.0));
  // Each chunk of 2^14 numbers is drawn from its own random stream, so two chunks differ.
  BOOST_TEST(x[0] != x[1 << 14]);
}

BOOST_AUTO_TEST_CASE(normal_numbers_follow_box_muller_for_any_number_of_threads) {
  const NormalStream numbers{.seed = 3, .stream = 4, .mean = -1, .deviation = 2};
  std::vector<float> values(3 * normal_chunk + 77), again(values.size());
  ThreadPool one(1), three(3);
  fill_normal(numbers, one, 0, values);
  fill_normal(numbers, three, 0, again);
  BOOST_TEST(values == again);
  fill_normal(numbers, three, normal_chunk, std::span(again).first(normal_chunk));
  BOOST_TEST(
      std::equal(again.begin(), again.begin() + normal_chunk, values.begin() + normal_chunk));

  double worst = 0;
  for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
    Rng rng(3, Purpose::parameters, 4, chunk);
    const auto first = static_cast<std::size_t>(chunk * normal_chunk);
    const std::size_t end = std::min(values.size(), first + normal_chunk);
    for (std::size_t i = first; i < end; i += 2) {
      const double u = (static_cast<float>(rng.next() >> 8) + 0.5f) * 0x1p-24f;
      const double v = (static_cast<float>(rng.next() >> 8) + 0.5f) * 0x1p-24f;
      const double radius = std::sqrt(-2 * std::log(u)), angle = 2 * std::numbers::pi * v;
      worst = std::max(worst, std::abs(values[i] - (-1 + 2 * radius * std::cos(angle))));
      if (i + 1 == end) break;
      worst = std::max(worst, std::abs(values[i + 1] - (-1 + 2 * radius * std::sin(angle))));
    }
  }
  // f32 rounds a number with an absolute value up to 12 by at most 12 * 2^-24. The bound allows
  // eight such errors.
  BOOST_TEST(worst < 6e-6);
}

BOOST_FIXTURE_TEST_CASE(constant_initial_values_are_constant, Fixture) {
  const nn::LayerNorm norm(Scope(parameters) / "norm", 3, 1e-5);
  BOOST_TEST(norm.weight.value().to_doubles() == std::vector<double>(3, 1.0));
  BOOST_TEST(norm.bias.value().to_doubles() == std::vector<double>(3, 0.0));
}

BOOST_FIXTURE_TEST_CASE(errors_of_shapes_name_the_layer, Fixture) {
  const Scope block = Scope(parameters) / "blocks" / 0;
  const Linear head(Scope(parameters) / "head", 64, 10);
  const nn::LayerNorm norm(block / "norm", 8, 1e-5);
  const FeedForward forward(block / "feed_forward", {.width = 8, .inner = 16}, normal(1),
                            normal(1));
  const nn::Embedding embedding(Scope(parameters) / "embedding", 5, 8);
  const Var x = Tensor::zeros(*backend, {3, 63}, DType::f32);
  expect_refusal([&] { head(x); },
                 "layer head: expected an input with the last dimension 64, got the shape [3, 63]");
  expect_refusal(
      [&] { norm(x); },
      "layer blocks.0.norm: expected an input with the last dimension 8, got the shape [3, 63]");
  expect_refusal([&] { forward(x, {}); },
                 "layer blocks.0.feed_forward.up: expected an input with the last dimension 8, got "
                 "the shape [3, 63]");
  expect_refusal(
      [&] {
        embedding(Tensor::from(*backend, {2}, std::vector<std::int32_t>{4, 5}));
      },
      "layer embedding: embedding: ids: expected 0 to 4, got 5 at index 1");
}

BOOST_AUTO_TEST_SUITE_END()
