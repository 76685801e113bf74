#include "autograd/chain.h"

#include <algorithm>
#include <cmath>
#include "tests/check.h"

#include "autograd/composed_attention.h"
#include "core/cpu/cpu_backend.h"
#include "cuda/emulator/backend.h"
#include "tests/composed_twin.h"
#include "tests/head_problem.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"
#include "tests/refusal.h"

using namespace longhand;

// DeltaFormer's operation: a worked example, rows that continue from a cache, many rows on many
// threads. Gradients, parity and mutants are covered by the catalog.
BOOST_AUTO_TEST_SUITE(chain_test)

namespace {

using Doubles = std::vector<double>;

void check_close(const Doubles& got, const Doubles& wanted, double tolerance) {
  BOOST_REQUIRE(got.size() == wanted.size());
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    const double error = std::abs(got[i] - wanted[i]);
    apart = std::max(apart, std::isfinite(error) ? error : 1e30);
  }
  BOOST_TEST(apart <= tolerance * std::max(largest, 1.0));
}

/// Heads, and gains between -1 and 0.
struct ChainProblem {
  HeadProblem heads;
  Tensor gain;

  ChainProblem(Backend& backend, DType type, const std::vector<std::int32_t>& lengths,
               std::int64_t count, std::int64_t width, std::int64_t v_width)
      : heads(backend, type, lengths, count, count, width, v_width),
        gain(random_tensor(backend, {heads.q.rows(), count}, master_type(type), 7)) {
    Doubles values = gain.to_doubles();
    for (double& g : values) g = -1 / (1 + std::exp(-g));
    gain.assign(values);
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_a_chain_comes_out) {
  for (const auto& [backend, type] :
       {std::pair{make_reference_backend(), DType::f64}, std::pair{make_cpu_backend(), DType::f32},
        std::pair{make_emulated_cuda_backend({}), DType::f32}}) {
    const auto column_of = [backend = backend, type = type](const Doubles& x) {
      return Tensor::from(*backend, {3, 1}, type, x);
    };
    const Var v(column_of({4, 2, 5}), true), gain(column_of({-0.5, -0.5, -0.5}), true);
    const ScoreVars scores{.q = {column_of({0, 0, 0}), 0, 1, 1},
                           .k = {column_of({1, 1, 1}), 0, 1, 1},
                           .queries = Segments(*backend, std::vector<std::int32_t>{3})};
    Tape tape;
    const Var y = recorded(tape, [&] {
      return chain(ChainOf::values, scores, {v, 0, 1, 1}, gain);
    });
    check_close(y.value().to_doubles(), {4, 0, 4}, 1e-6);
    tape.backward(y, column_of({0, 0, 1}));
    check_close(v.grad().to_doubles(), {-0.125, -0.25, 1}, 1e-6);
    check_close(gain.grad().to_doubles(), {0, -1, 2}, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(it_is_a_triangular_system_of_strict_softmax) {
  check_composed("chain",
                 [](const catalog::Call& c) { return catalog::find("composed_chain").run(c); });
}

BOOST_AUTO_TEST_CASE(rows_continue_from_cached_ones) {
  for (const auto& [backend, type, tolerance] :
       {std::tuple{make_reference_backend(), DType::f64, 1e-13},
        std::tuple{make_cpu_backend(), DType::f32, 2e-5},
        std::tuple{make_emulated_cuda_backend({}), DType::f32, 2e-5}}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const std::int32_t n = 150;
      const ChainProblem p(*backend, type, {n}, 2, 12, 20);
      const ScoreVars whole = p.heads.scores();
      const Tensor expected = chain(ChainOf::values, whole, p.heads.values(), p.gain).value();
      const Tensor kept = Tensor::zeros(*backend, {n, 40}, type);
      Doubles got;
      for (const auto& [first, count] : std::vector<std::pair<std::int32_t, std::int32_t>>{
               {0, 70}, {70, 1}, {71, 1}, {72, 78}}) {
        const Segments queries(*backend, std::vector<std::int32_t>{count});
        const Segments keys(*backend, std::vector<std::int32_t>{0},
                            std::vector<std::int32_t>{first + count});
        const ScoreVars part{.q = all_columns(p.heads.q.slice(first, count), 2),
                             .k = whole.k,
                             .queries = queries,
                             .keys = keys};
        const Heads earlier{kept, 0, 2, 20};
        const Var y =
            chain(ChainOf::values, part, p.heads.values(), p.gain.slice(first, count), earlier);
        (*backend)(Append{.x = {y.value(), 0, 2, 20}, .from = queries, .y = earlier, .to = keys});
        std::ranges::copy(y.value().to_doubles(), std::back_inserter(got));
      }
      check_close(got, expected.to_doubles(), tolerance);
    }
  }
}

// Several blocks and ranges of keys, in all kinds of products and on several threads.
BOOST_AUTO_TEST_CASE(long_sequences_agree_with_the_reference_on_any_number_of_threads) {
  const auto all = [](Backend& backend, DType type) {
    const ChainProblem p(backend, type, {700, 3, 130}, 3, 24, 40);
    const ScoreVars s = p.heads.scores(true);
    const HeadVars v = p.heads.values(true);
    const Var gain(p.gain, true);
    Tape tape;
    const Var y = recorded(tape, [&] { return chain(ChainOf::values, s, v, gain); });
    tape.backward(y, random_tensor(backend, y.shape(), type, 9));
    return std::vector<Doubles>{y.value().to_doubles(), s.q.data.grad().to_doubles(),
                                s.k.data.grad().to_doubles(), v.data.grad().to_doubles(),
                                gain.grad().to_doubles()};
  };
  const auto reference = all(*make_reference_backend(), DType::f64);
  const auto one = all(*make_cpu_backend({.threads = 1, .math = Math::exact}), DType::f32);
  const auto three = all(*make_cpu_backend({.threads = 3, .math = Math::exact}), DType::f32);
  BOOST_TEST((one == three));
  for (std::size_t i = 0; i < reference.size(); ++i) {
    BOOST_TEST_CONTEXT("result " << i) { check_close(one[i], reference[i], 3e-5); }
  }
}

BOOST_AUTO_TEST_CASE(wrong_chains_are_refused) {
  const auto backend = make_reference_backend();
  const ChainProblem p(*backend, DType::f64, {4}, 2, 3, 3);
  const auto refused = [&](const auto& alter) {
    ScoreVars s = p.heads.scores();
    Var gain = p.gain;
    alter(s, gain);
    return refusal([&] { chain(ChainOf::values, s, p.heads.values(), gain); });
  };
  BOOST_TEST(refused([](ScoreVars& s, Var&) { s.window = 2; }) ==
             "chain: window: expected none, got 2");
  BOOST_TEST(refused([&](ScoreVars& s, Var&) { s.tau = p.gain; }) ==
             "chain: scores: expected no tau, shift and sink in a chain of values, got one");
  BOOST_TEST(refused([](ScoreVars& s, Var&) {
               s.rule = Rule::stick;
             }).starts_with("chain: rule: expected softmax"));
  BOOST_TEST(refused([&](ScoreVars&, Var& gain) { gain = p.gain.slice(0, 3); }) ==
             "chain: gain: expected [4, 2] f64, got [3, 2] f64");
}

BOOST_AUTO_TEST_SUITE_END()
