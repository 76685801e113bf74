// Tests Muon: the Newton-Schulz iteration, the formula over several steps, and the division of the
// parameters between Muon and AdamW.
#include "nn/training/muon.h"

#include <cmath>
#include <numeric>

#include "core/contract/elementwise.h"
#include "tests/check.h"
#include "tests/distance.h"
#include "tests/program.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(muon_test)

using namespace longhand;
using namespace longhand::nn;

namespace {

/// A matrix in f64, stored row by row.
struct Matrix {
  std::size_t rows, columns;
  std::vector<double> of = std::vector<double>(rows * columns);

  double& operator()(std::size_t i, std::size_t j) { return of[i * columns + j]; }
  double operator()(std::size_t i, std::size_t j) const { return of[i * columns + j]; }
};

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c{a.rows, b.columns};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < b.columns; ++j) {
      for (std::size_t k = 0; k < a.columns; ++k) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

Matrix transposed(const Matrix& a) {
  Matrix b{a.columns, a.rows};
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) b(j, i) = a(i, j);
  }
  return b;
}

/// torch.optim.Muon's iteration: a matrix with more rows than columns is transposed before and
/// after it.
Matrix newton_schulz(Matrix x, int steps) {
  const bool tall = x.rows > x.columns;
  if (tall) x = transposed(x);
  double squares = 0;
  for (const double entry : x.of) squares += entry * entry;
  for (double& entry : x.of) entry /= std::max(std::sqrt(squares), 1e-7);
  for (int step = 0; step < steps; ++step) {
    const Matrix gram = product(x, transposed(x)), square = product(gram, gram);
    Matrix update = gram;
    for (std::size_t i = 0; i < update.of.size(); ++i) {
      update.of[i] = -4.775 * gram.of[i] + 2.0315 * square.of[i];
    }
    Matrix next = product(update, x);
    for (std::size_t i = 0; i < x.of.size(); ++i) next.of[i] += 3.4445 * x.of[i];
    x = next;
  }
  return tall ? transposed(x) : x;
}

/// A step of Muon as in PyTorch's documentation.
void muon_step(Matrix& w, Matrix& buffer, const Matrix& g, double rate, double decay, double mu,
               bool nesterov, double scale) {
  for (std::size_t i = 0; i < g.of.size(); ++i) buffer.of[i] = mu * buffer.of[i] + g.of[i];
  Matrix d = buffer;
  for (std::size_t i = 0; nesterov && i < g.of.size(); ++i) d.of[i] = g.of[i] + mu * buffer.of[i];
  const Matrix o = newton_schulz(d, 5);
  for (std::size_t i = 0; i < w.of.size(); ++i) {
    w.of[i] = w.of[i] * (1 - rate * decay) - rate * scale * o.of[i];
  }
}

struct Fixture {
  std::shared_ptr<Backend> backend = make_reference_backend();
  Parameters parameters{*backend, {DType::f64}, 1};
  Rng rng{7, Purpose::test};

  Matrix drawn(const Parameter& like) {
    Matrix m{static_cast<std::size_t>(like.value().shape()[0]),
             static_cast<std::size_t>(like.value().shape()[1])};
    for (double& entry : m.of) entry = rng.normal();
    return m;
  }
  void send(const Parameter& parameter, const std::vector<double>& gradient) const {
    parameter.var().sink().add(
        Tensor::from(*backend, parameter.value().shape(), DType::f64, gradient));
  }
  void take(Optimizer& optimizer, double rate, std::int64_t step, double loss = 1) const {
    optimizer.prepare(rate, step);
    optimizer.step(Tensor::from(*backend, {1}, DType::f64, std::vector<double>{loss}));
  }
};
const auto close = boost::test_tools::tolerance(1e-12);

}  // namespace

BOOST_FIXTURE_TEST_CASE(twenty_steps_equal_a_plain_loop_of_the_formula, Fixture) {
  const std::vector<Shape> shapes{{3, 3}, {2, 5}, {6, 4}, {1, 3}};
  for (const bool nesterov : {true, false}) {
    for (const auto scale : {MuonOptions::Scale::adam, MuonOptions::Scale::original}) {
      Parameters own{*backend, {DType::f64}, 1};
      std::vector<Parameter> all;
      std::vector<Matrix> w, buffer;
      for (const Shape& shape : shapes) {
        all.push_back(own.add(text("w", all.size()), shape, normal(1), true));
        w.push_back(drawn(all.back()));
        w.back().of = all.back().value().to_doubles();
        buffer.push_back({w.back().rows, w.back().columns});
      }
      MuonOptimizer muon(own, {.adam = {.decay = 0.1},
                               .momentum = 0.9,
                               .nesterov = nesterov,
                               .scale = scale,
                               .rate = 0.5});
      for (int step = 1; step <= 20; ++step) {
        const double rate = 0.02 / step;
        for (std::size_t i = 0; i < all.size(); ++i) {
          const Matrix g = drawn(all[i]);
          send(all[i], g.of);
          const auto rows = static_cast<double>(w[i].rows);
          const auto columns = static_cast<double>(w[i].columns);
          const double factor = scale == MuonOptions::Scale::adam
                                    ? 0.2 * std::sqrt(std::max(rows, columns))
                                    : std::sqrt(std::max(1.0, rows / columns));
          muon_step(w[i], buffer[i], g, 0.5 * rate, 0.1, 0.9, nesterov, factor);
        }
        take(muon, rate, step);
      }
      for (std::size_t i = 0; i < all.size(); ++i) {
        BOOST_TEST(distance(w[i].of, all[i].value().to_doubles()) < 1e-10);
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(the_iteration_keeps_singular_vectors_and_moves_singular_values_near_1,
                        Fixture) {
  // Tests the worked example of docs/math/muon.md, a symmetric matrix with the singular values 4
  // and 2.
  const auto x = [&](const std::vector<double>& numbers) {
    return orthogonalized(Tensor::from(*backend, {2, 2}, DType::f64, numbers), 5)
        .value()
        .to_doubles();
  };
  double one = 4 / std::sqrt(20.0), other = 2 / std::sqrt(20.0);
  for (int step = 0; step < 5; ++step) {
    for (double* s : {&one, &other}) {
      *s = 3.4445 * *s - 4.775 * std::pow(*s, 3) + 2.0315 * std::pow(*s, 5);
    }
  }
  const std::vector<double> got = x({3, 1, 1, 3});
  BOOST_TEST(got[0] == (one + other) / 2, close);
  BOOST_TEST(got[1] == (one - other) / 2, close);
  for (const double s : {one, other}) BOOST_TEST((s > 0.68 && s < 1.21), s);
  // A zero matrix stays zero.
  BOOST_TEST((x({0, 0, 0, 0}) == std::vector<double>(4, 0.0)));
}

BOOST_FIXTURE_TEST_CASE(adamw_updates_vectors_groups_and_parts_of_matrices, Fixture) {
  const Parameter matrix = parameters.add("matrix", {4, 3}, normal(1), true);
  const Parameter embedding = parameters.add("embedding", {4, 3}, normal(1), true);
  const Parameter part = parameters.add("part", {4, 3}, normal(1), true);
  const Parameter bias = parameters.add("bias", {4}, constant(1), false);
  part.learn_only({{1, 2}});
  const ParameterGroup group{.parameters = {embedding}, .adam = true};
  const AdamOptions adam{.beta1 = 0.8, .epsilon = 1e-3, .decay = 0.1, .clip = 0.7};
  const auto muon = make_optimizer(parameters, MuonOptions{.adam = adam}, {&group, 1});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : muon->state()) names.push_back(name);
  BOOST_TEST((names == std::vector<std::string>{"matrix.m", "embedding.m", "embedding.v", "part.m",
                                                "part.v", "bias.m", "bias.v"}));
  // Copies of all parameters, which AdamW alone updates. Only `matrix`, which Muon updates, must
  // then differ from its copy.
  Parameters again{*backend, {DType::f64}, 1};
  std::vector<Parameter> same;
  for (const Parameter& p : parameters.all()) {
    same.push_back(again.add(p.name(), p.value().shape(), normal(1), p.decays()));
    same.back().value().assign(p.value().to_doubles());
  }
  same[2].learn_only({{1, 2}});
  const auto plain = make_optimizer(again, adam);
  for (int step = 1; step <= 3; ++step) {
    for (std::size_t i = 0; i < same.size(); ++i) {
      std::vector<double> g(static_cast<std::size_t>(same[i].value().size()));
      for (double& entry : g) entry = rng.normal();
      send(parameters.all()[i], g);
      send(same[i], g);
    }
    take(*muon, 0.1, step);
    take(*plain, 0.1, step);
  }
  for (std::size_t i = 0; i < same.size(); ++i) {
    const bool equal = parameters.all()[i].value().to_doubles() == same[i].value().to_doubles();
    BOOST_TEST(equal == (i != 0), same[i].name());
  }
}

BOOST_FIXTURE_TEST_CASE(a_non_finite_step_changes_nothing, Fixture) {
  const Parameter w = parameters.add("w", {2, 2}, normal(1), true);
  MuonOptimizer muon(parameters, {});
  send(w, {1, 2, 3, 4});
  take(muon, 0.1, 1);
  const std::vector<double> before = w.value().to_doubles();
  const std::vector<double> moment = muon.state()[0].tensor.to_doubles();
  send(w, {INFINITY, 2, 3, 4});
  take(muon, 0.1, 2);
  BOOST_TEST((w.value().to_doubles() == before));
  BOOST_TEST((muon.state()[0].tensor.to_doubles() == moment));
}

BOOST_FIXTURE_TEST_CASE(wrong_options_are_refused, Fixture) {
  parameters.add("w", {2, 2}, normal(1), true);
  const auto refused = [&](const MuonOptions& options) {
    return refusal([&] { make_optimizer(parameters, options); });
  };
  BOOST_TEST(contains(refused({.momentum = 1}), "momentum: expected a number from 0 to below 1"));
  BOOST_TEST(contains(refused({.steps = 0}), "steps: expected 1 to 100, got 0"));
  BOOST_TEST(contains(refused({.rate = -1}), "rate: expected a number of at least 0, got -1"));
  BOOST_TEST(
      contains(refused({.adam = {.short_moments = true}}), "moments of the parameters' type"));
}

BOOST_AUTO_TEST_CASE(a_run_is_trained_resumed_and_verified_with_muon) {
  const Program longhand;
  const std::string train =
      "train --task flip-flop --task.instructions 8 --width 16 --layers 2 --heads softmax:2 "
      "--batch 4 --evaluate-samples 4 --quiet --json ";
  const std::string muon = "--optimizer muon --muon-momentum 0.9 --muon-rate 2 ";
  longhand.json(train + muon + "--steps 3 --transcript --out whole");
  BOOST_TEST(longhand("verify whole").status == 0);
  BOOST_TEST(longhand.json(train + muon + "--steps 3 --max-minutes 0 --out part")["step"] == 1);
  longhand.json("train --resume part --threads 2 --quiet --json");
  for (const char* const file : {"model", "optimizer"}) {
    const std::string name = text("/checkpoints/step-3/", file, ".safetensors");
    BOOST_TEST((contents(longhand.path("part" + name)) == contents(longhand.path("whole" + name))));
  }
  // AdamW's second moment exists for the embedding, the output layer and vectors only.
  const auto state =
      SafetensorsFile::open(longhand.path("whole/checkpoints/step-3/optimizer.safetensors"));
  const auto has = [&](const std::string& name) { return state.find(name) != nullptr; };
  BOOST_TEST(has("embedding.weight.v"));
  BOOST_TEST(has("output.weight.v"));
  BOOST_TEST(has("blocks.0.norm1.weight.v"));
  BOOST_TEST(has("blocks.0.mixing.out.weight.m"));
  BOOST_TEST(!has("blocks.0.mixing.out.weight.v"));
  longhand.refuses(
      2, train + "--steps 3 --out x --muon-momentum 0.9",
      "--muon-momentum: --optimizer: expected muon, because options of Muon are set, got adam");
  longhand.refuses(2, train + "--steps 3 --out x --optimizer muon --moments bf16 --beta2 0.9",
                   "--moments: expected f32 with the optimizer muon, got bf16");
  longhand.refuses(2, train + "--steps 3 --out x --optimizer lion", "--optimizer");
}

BOOST_AUTO_TEST_SUITE_END()
