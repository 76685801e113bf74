#include "autograd/delta.h"

#include <algorithm>
#include <cmath>
#include "tests/check.h"

#include "autograd/composed_attention.h"
#include "core/contract/delta.h"
#include "core/cpu/cpu_backend.h"
#include "cuda/emulator/backend.h"
#include "tests/composed_twin.h"
#include "tests/head_problem.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"
#include "tests/refusal.h"

using namespace longhand;

// Tests the delta rule with a worked example, continued states and long sequences. The tests of the
// op catalog check the gradients, compare the backends and detect deliberate bugs.
BOOST_AUTO_TEST_SUITE(delta_test)

namespace {

using Doubles = std::vector<double>;

/// Random heads with random decays, and with random betas (sizes of the updates of the state)
/// between 0 and 2. Each key has length 1 after it is divided by sqrt(width).
struct DeltaProblem {
  HeadProblem heads;
  Tensor beta, decay;

  DeltaProblem(Backend& backend, DType type, const std::vector<std::int32_t>& lengths,
               std::int64_t count, std::int64_t key_heads, std::int64_t width, std::int64_t v_width)
      : heads(backend, type, lengths, count, key_heads, width, v_width) {
    Doubles keys = heads.k.to_doubles();
    for (std::size_t at = 0; at < keys.size(); at += static_cast<std::size_t>(width)) {
      double squares = 0;
      for (std::int64_t e = 0; e < width; ++e) squares += keys[at + e] * keys[at + e];
      for (std::int64_t e = 0; e < width; ++e) {
        keys[at + e] *= std::sqrt(static_cast<double>(width) / squares);
      }
    }
    heads.k.assign(keys);
    Rng rng(7, Purpose::test);
    const Shape numbers{heads.q.rows(), key_heads};
    Doubles betas(static_cast<std::size_t>(numbers.size())), decays = betas;
    for (double& b : betas) b = 2 * rng.uniform();
    for (double& d : decays) d = -0.3 * rng.uniform();
    beta = Tensor::from(backend, numbers, master_type(type), betas);
    decay = Tensor::from(backend, numbers, master_type(type), decays);
  }

  DeltaVars vars(bool gradients = false) const {
    const ScoreVars s = heads.scores(gradients);
    return {.q = s.q,
            .k = s.k,
            .v = heads.values(gradients),
            .segments = heads.segments,
            .beta = Var(beta, gradients),
            .decay = Var(decay, gradients)};
  }
};

void check_near(const Doubles& got, const Doubles& expected, double tolerance) {
  BOOST_REQUIRE_EQUAL(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    BOOST_TEST_CONTEXT("entry " << i << ": expected " << expected[i] << ", got " << got[i]) {
      BOOST_REQUIRE(std::abs(got[i] - expected[i]) <= tolerance);
    }
  }
}

/// Returns `count` rows of all heads of x, beginning with row `first`.
HeadVars rows_from(const HeadVars& x, std::int64_t first, std::int64_t count) {
  return {x.data.value().slice(first, count), x.first_column, x.heads, x.width};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_the_docs_is_right) {
  const auto backend = make_reference_backend();
  const auto leaf = [&](const Doubles& values) { return Var(column(*backend, values), true); };
  const HeadVars ones{leaf({1, 1, 1}), 0, 1, 1}, values{leaf({3, 5, 0}), 0, 1, 1};
  const DeltaVars in{.q = ones,
                     .k = {leaf({1, 1, 1}), 0, 1, 1},
                     .v = values,
                     .segments = Segments(*backend, std::vector<std::int32_t>{3}),
                     .beta = leaf({1, 1, 2})};
  Tape tape;
  const Var y = recorded(tape, [&] { return delta(in); });
  check_near(y.value().to_doubles(), {3, 5, -5}, 0);
  tape.backward(y, column(*backend, {0, 0, 1}));
  check_near(in.v.data.grad().to_doubles(), {0, -1, 2}, 0);
  check_near(in.beta.grad().to_doubles(), {0, -2, -5}, 0);
  check_near(in.q.data.grad().to_doubles(), {0, 0, -5}, 0);
}

BOOST_AUTO_TEST_CASE(a_beta_of_2_or_0_computes_parity) {
  const auto backend = make_cpu_backend();
  // The first token writes 1 to the state. Each later token with bit 1 flips the sign of the state.
  const std::int32_t n = 500;
  Rng rng(5, Purpose::test);
  Doubles beta{1}, expected{1}, values(n, 0.0);
  for (std::int32_t t = 1; t < n; ++t) {
    const bool bit = rng.uniform() < 0.5;
    beta.push_back(bit ? 2 : 0);
    expected.push_back(bit ? -expected.back() : expected.back());
  }
  values[0] = 1;
  const auto of = [&](const Doubles& x) {
    return Var(Tensor::from(*backend, {n, 1}, DType::f32, x));
  };
  const HeadVars ones{of(Doubles(n, 1.0)), 0, 1, 1};
  const Var y = delta({.q = ones,
                       .k = ones,
                       .v = {of(values), 0, 1, 1},
                       .segments = Segments(*backend, std::vector<std::int32_t>{n}),
                       .beta = of(beta)});
  check_near(y.value().to_doubles(), expected, 0);
}

BOOST_AUTO_TEST_CASE(delta_heads_equal_attention_without_softmax_over_a_solved_system) {
  check_composed("delta",
                 [](const catalog::Call& c) { return catalog::find("composed_delta").run(c); });
}

BOOST_AUTO_TEST_CASE(states_continue_from_their_cache) {
  for (const auto& [backend, type, tolerance] :
       {std::tuple{make_reference_backend(), DType::f64, 1e-13},
        std::tuple{make_cpu_backend(), DType::f32, 2e-5},
        std::tuple{make_emulated_cuda_backend({}), DType::f32, 2e-5}}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const std::int32_t n = 150;
      const DeltaProblem p(*backend, type, {n}, 4, 2, 20, 12);
      const DeltaVars whole = p.vars();
      const Doubles expected = delta(whole).value().to_doubles();
      const Tensor memory = Tensor::zeros(*backend, {1, 2 * 20 * 12}, master_type(type));
      Doubles got;
      for (const auto& [first, count] : std::vector<std::pair<std::int64_t, std::int32_t>>{
               {0, 70}, {70, 1}, {71, 1}, {72, 78}}) {
        const Var y = delta({.q = rows_from(whole.q, first, count),
                             .k = rows_from(whole.k, first, count),
                             .v = rows_from(whole.v, first, count),
                             .segments = Segments(*backend, std::vector<std::int32_t>{count}),
                             .beta = p.beta.slice(first, count),
                             .decay = p.decay.slice(first, count)},
                            {.before = memory, .after = memory});
        std::ranges::copy(y.value().to_doubles(), std::back_inserter(got));
      }
      check_near(got, expected, tolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_without_new_tokens_keeps_its_state) {
  for (const auto& backend : {make_cpu_backend(), make_emulated_cuda_backend({})}) {
    const DeltaProblem p(*backend, DType::f32, {3, 0}, 1, 1, 5, 3);
    const Tensor before = random_tensor(*backend, {2, 15}, DType::f32, 3);
    const Tensor after = empty_like(before);
    delta(p.vars(), {.before = before, .after = after});
    const Doubles old = before.to_doubles(), now = after.to_doubles();
    BOOST_TEST((Doubles(old.begin() + 15, old.end()) == Doubles(now.begin() + 15, now.end())));
    BOOST_TEST((Doubles(old.begin(), old.begin() + 15) != Doubles(now.begin(), now.begin() + 15)));
  }
}

// Tests a sequence that is processed in many chunks, and whose decays sum to hundreds.
BOOST_AUTO_TEST_CASE(long_sequences_agree_with_the_reference) {
  const auto reference = make_reference_backend();
  const auto gradients = [](Backend& backend, DType type) {
    const DeltaProblem p(backend, type, {2000}, 1, 1, 8, 8);
    const DeltaVars in = p.vars(true);
    Tape tape;
    const Var y = recorded(tape, [&] { return delta(in); });
    tape.backward(y, random_tensor(backend, y.shape(), type, 9));
    std::vector<Doubles> all{y.value().to_doubles()};
    for (const Var& x : {in.q.data, in.k.data, in.v.data, in.beta, in.decay}) {
      all.push_back(x.grad().to_doubles());
    }
    return all;
  };
  const std::vector<Doubles> expected = gradients(*reference, DType::f64);
  std::vector<std::shared_ptr<Backend>> backends;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    backends.push_back(make_cpu_backend({.threads = 2}, isa));
  }
  backends.push_back(make_emulated_cuda_backend({}));
  for (const auto& backend : backends) {
    const std::vector<Doubles> got = gradients(*backend, DType::f32);
    for (std::size_t i = 0; i < got.size(); ++i) {
      double most = 0;
      for (const double x : expected[i]) most = std::max(most, std::abs(x));
      BOOST_TEST_CONTEXT(backend->name() << ", result " << i) {
        check_near(got[i], expected[i], 3e-5 * most);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  const auto backend = make_reference_backend();
  const DeltaProblem p(*backend, DType::f64, {4}, 3, 3, 2, 2);
  const auto refused = [&](const auto& alter) {
    DeltaVars in = p.vars();
    alter(in);
    return refusal([&] { delta(in); });
  };
  BOOST_TEST(
      refused([](DeltaVars& in) { in.k.heads = 2; }) ==
      "delta: k: expected a number of heads that divides 3, the number of heads of q, got 2");
  BOOST_TEST(refused([](DeltaVars& in) { in.beta = in.q.data; }) ==
             "delta: beta: expected [4, 3] f64, got [4, 6] f64");
  BOOST_TEST(
      refused(
          [&](DeltaVars& in) { in.segments = Segments(*backend, std::vector<std::int32_t>{3}); }) ==
      "delta: segments: expected consecutive segments that cover all rows of q (4) and k (4), "
      "got segments of 3 rows in total");
  const DeltaVars in = p.vars(true);
  const Tensor memory = Tensor::zeros(*backend, {1, 12}, DType::f64);
  Tape tape;
  BOOST_TEST(refusal([&] { recorded(tape, [&] { return delta(in, {.before = memory}); }); }) ==
             "delta: a memory from a cache has no gradient; run delta without a `Recording`");
}

BOOST_AUTO_TEST_SUITE_END()
