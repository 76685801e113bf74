#include "autograd/deltaformer.h"

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

// Tests DeltaFormer attention with a worked example, with cached keys and outputs of earlier rows,
// and with many rows on several threads. Other tests check its gradients, its parity between
// backends, and that wrong implementations (mutants) are detected.
BOOST_AUTO_TEST_SUITE(deltaformer_test)

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

/// Random q, k and v, and random values between -1 and 0 for DeltaFormer's input `gain`.
struct Problem {
  HeadProblem heads;
  Tensor gain;

  Problem(Backend& backend, DType type, const std::vector<std::int32_t>& lengths,
          std::int64_t count, std::int64_t width, std::int64_t v_width)
      : heads(backend, type, lengths, count, count, width, v_width),
        gain(random_tensor(backend, {heads.q.rows(), count}, master_type(type), 7)) {
    Doubles values = gain.to_doubles();
    for (double& g : values) g = -1 / (1 + std::exp(-g));
    gain.assign(values);
  }
  DeltaFormerVars inputs(bool gradients = false) const {
    const ScoreVars s = heads.scores(gradients);
    return {.q = s.q,
            .k = s.k,
            .v = heads.values(gradients),
            .gain = Var(gain, gradients),
            .queries = s.queries};
  }
};

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_the_docs_is_right) {
  for (const auto& [backend, type] :
       {std::pair{make_reference_backend(), DType::f64}, std::pair{make_cpu_backend(), DType::f32},
        std::pair{make_emulated_cuda_backend({}), DType::f32}}) {
    const auto column_of = [backend = backend, type = type](const Doubles& x) {
      return Tensor::from(*backend, {3, 1}, type, x);
    };
    const Var v(column_of({4, 2, 5}), true), gain(column_of({-0.5, -0.5, -0.5}), true);
    const DeltaFormerVars inputs{.q = {column_of({0, 0, 0}), 0, 1, 1},
                                 .k = {column_of({1, 1, 1}), 0, 1, 1},
                                 .v = {v, 0, 1, 1},
                                 .gain = gain,
                                 .queries = Segments(*backend, std::vector<std::int32_t>{3})};
    Tape tape;
    const Var y = recorded(tape, [&] { return deltaformer(inputs); });
    check_close(y.value().to_doubles(), {4, 0, 4}, 1e-6);
    tape.backward(y, column_of({0, 0, 1}));
    check_close(v.grad().to_doubles(), {-0.125, -0.25, 1}, 1e-6);
    check_close(gain.grad().to_doubles(), {0, -1, 2}, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(deltaformer_equals_a_triangular_system_of_strict_softmax_weights) {
  check_composed("deltaformer", [](const catalog::Call& c) {
    return catalog::find("composed_deltaformer").run(c);
  });
}

BOOST_AUTO_TEST_CASE(rows_continue_from_cached_ones) {
  for (const auto& [backend, type, tolerance] :
       {std::tuple{make_reference_backend(), DType::f64, 1e-13},
        std::tuple{make_cpu_backend(), DType::f32, 2e-5},
        std::tuple{make_emulated_cuda_backend({.math = Math::exact}), DType::f32, 2e-5},
        // The products of Math::fast have operands of TF32, which are rounded to 11 bits.
        std::tuple{make_emulated_cuda_backend({.math = Math::fast}), DType::f32, 1e-3}}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const std::int32_t n = 150;
      const Problem p(*backend, type, {n}, 2, 12, 20);
      const DeltaFormerVars whole = p.inputs();
      const Tensor expected = deltaformer(whole).value();
      const Tensor kept = Tensor::zeros(*backend, {n, 40}, type);
      Doubles got;
      for (const auto& [first, count] : std::vector<std::pair<std::int32_t, std::int32_t>>{
               {0, 70}, {70, 1}, {71, 1}, {72, 78}}) {
        const Segments queries(*backend, std::vector<std::int32_t>{count});
        const Segments keys(*backend, std::vector<std::int32_t>{0},
                            std::vector<std::int32_t>{first + count});
        const DeltaFormerVars part{.q = all_columns(p.heads.q.slice(first, count), 2),
                                   .k = whole.k,
                                   .v = whole.v,
                                   .gain = p.gain.slice(first, count),
                                   .queries = queries,
                                   .keys = keys};
        const Heads earlier{kept, 0, 2, 20};
        const Var y = deltaformer(part, earlier);
        (*backend)(Append{.x = {y.value(), 0, 2, 20}, .from = queries, .y = earlier, .to = keys});
        std::ranges::copy(y.value().to_doubles(), std::back_inserter(got));
      }
      check_close(got, expected.to_doubles(), tolerance);
    }
  }
}

// The kernels divide a sequence of 700 tokens into several blocks of queries and of keys. So all
// kinds of matrix products between blocks are tested.
BOOST_AUTO_TEST_CASE(long_sequences_agree_with_the_reference_on_any_number_of_threads) {
  const auto all = [](Backend& backend, DType type) {
    const Problem p(backend, type, {700, 3, 130}, 3, 24, 40);
    const DeltaFormerVars in = p.inputs(true);
    Tape tape;
    const Var y = recorded(tape, [&] { return deltaformer(in); });
    tape.backward(y, random_tensor(backend, y.shape(), type, 9));
    return std::vector<Doubles>{y.value().to_doubles(), in.q.data.grad().to_doubles(),
                                in.k.data.grad().to_doubles(), in.v.data.grad().to_doubles(),
                                in.gain.grad().to_doubles()};
  };
  const auto reference = all(*make_reference_backend(), DType::f64);
  const auto one = all(*make_cpu_backend({.threads = 1, .math = Math::exact}), DType::f32);
  const auto three = all(*make_cpu_backend({.threads = 3, .math = Math::exact}), DType::f32);
  BOOST_TEST((one == three));
  for (std::size_t i = 0; i < reference.size(); ++i) {
    BOOST_TEST_CONTEXT("result " << i) { check_close(one[i], reference[i], 3e-5); }
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  const auto backend = make_reference_backend();
  const Problem p(*backend, DType::f64, {4}, 2, 3, 3);
  const auto refused = [&](const auto& alter) {
    DeltaFormerVars in = p.inputs();
    alter(in);
    return refusal([&] { deltaformer(in); });
  };
  BOOST_TEST(refused([](DeltaFormerVars& in) { in.k.heads = 1; }) ==
             "deltaformer: k: expected 2 heads, the number of heads of q, got 1");
  BOOST_TEST(refused([](DeltaFormerVars& in) { in.v.heads = 1; }) ==
             "deltaformer: v: expected 2 heads, got 1 of 3");
  BOOST_TEST(refused([&](DeltaFormerVars& in) { in.gain = p.gain.slice(0, 3); }) ==
             "deltaformer: gain: expected [4, 2] f64, got [3, 2] f64");
  BOOST_TEST(
      refused([&](DeltaFormerVars& in) {
        in.keys = Segments(*backend, std::vector<std::int32_t>{4});
        in.queries = Segments(*backend, std::vector<std::int32_t>{3});
        in.q.data = p.heads.q.slice(0, 3);
        in.gain = p.gain.slice(0, 3);
      }) ==
      "deltaformer: earlier: expected the cached outputs at the positions before the first query, "
      "got none");
}

BOOST_AUTO_TEST_SUITE_END()
