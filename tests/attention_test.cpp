#include "autograd/attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include "tests/check.h"

#include "autograd/combine.h"
#include "autograd/composed_attention.h"
#include "autograd/cumulate.h"
#include "autograd/elementwise.h"
#include "autograd/reinforce.h"
#include "autograd/tolerance.h"
#include "core/error.h"
#include "core/safetensors.h"
#include "tests/head_problem.h"
#include "tests/paths.h"
#include "tests/recorded.h"
#include "tests/reference_fixture.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(attention_test)

using namespace longhand;

namespace {

std::shared_ptr<Backend> reference() {
  static const std::shared_ptr<Backend> backend = make_reference_backend();
  return backend;
}

/// Queries are 1 and keys are ln 1 .. ln 4, so the weights of a query are proportional to 1, 2, 3,
/// 4.
ScoreVars worked_scores(Backend& backend) {
  const Segments four(backend, std::vector<std::int32_t>{4});
  return {.q = {Var(column(backend, {1, 1, 1, 1}), true), 0, 1, 1},
          .k = {Var(column(backend, {0, std::log(2), std::log(3), std::log(4)}), true), 0, 1, 1},
          .queries = four,
          .scale = 1};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_is_right) {
  const ScoreVars s = worked_scores(*reference());
  const HeadVars v{Var(column(*reference(), {6, 0, 6, 10}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v); });
  check_values(y.value(), {6, 2, 4, 6.4}, 1e-12);
  tape.backward(y, column(*reference(), {0, 0, 0, 1}));
  check_values(v.data.grad(), {0.1, 0.2, 0.3, 0.4}, 1e-12);
  check_values(s.k.data.grad(), {-0.04, -1.28, -0.12, 1.44}, 1e-12);
  check_values(s.q.data.grad(), {0, 0, 0, 1.6 * std::log(2) - 0.12 * std::log(3)}, 1e-12);
}

BOOST_AUTO_TEST_CASE(the_worked_example_with_a_temperature_is_right) {
  ScoreVars s = worked_scores(*reference());
  const Var beta =
      Tensor::from(*reference(), {1}, DType::f64, std::vector<double>{1 / std::log(2)});
  const auto tau = [&](bool whole) {
    return multiply(log_counts(*reference(), DType::f64, s.queries, s.queries, 1, whole), beta);
  };
  s.multiplier = tau(false);
  const HeadVars v{Var(column(*reference(), {6, 0, 6, 10})), 0, 1, 1};
  // The third key is ln 3, so its weight for the third query is 3^tau before normalization, where
  // tau = log2 3 is the factor of this query's scores.
  const double third = std::pow(3, std::log2(3));
  check_values(attention(s, v).value().to_doubles(),
               {6, 2, (6 + 6 * third) / (4 + third), 220.0 / 30}, 1e-12);
  s.multiplier = tau(true);  // the factor tau of the scores is 2 for every query
  check_values(attention(s, v).value().to_doubles(), {6, 1.2, 60.0 / 14, 220.0 / 30}, 1e-12);
}

BOOST_AUTO_TEST_CASE(fused_and_composed_agree) {
  for (const char* name : {"attention", "fal", "chacal", "stick_attention", "tra_attention",
                           "entmax_attention", "sigmoid_attention"}) {
    const catalog::Operation& fused = catalog::find(name);
    const catalog::Operation& composed = catalog::find(std::string("composed_") + name);
    Rng rng(2, Purpose::test);
    for (const catalog::Case& values : fused.cases(rng)) {
      const auto a = tolerance::run(fused, values, *reference(), DType::f64);
      const auto b = tolerance::run(composed, values, *reference(), DType::f64);
      BOOST_REQUIRE_EQUAL(a.size(), b.size());
      for (const auto& [what, expected] : a) {
        BOOST_TEST_CONTEXT(name << ' ' << what) {
          check_values(b.at(what).values, expected.values, 1e-11);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_plain_loop_gives_the_same_numbers) {
  const SafetensorsFile file =
      SafetensorsFile::open(std::string(test_data) + "/golden/attention.safetensors");
  const auto host = [&](const std::string& name) {
    const SafetensorsEntry& entry = file.at(name);
    std::vector<double> values(static_cast<std::size_t>(entry.shape.size()));
    std::memcpy(values.data(), entry.bytes.data(), values.size() * sizeof(double));
    return catalog::HostTensor{entry.shape, values};
  };
  for (const char* name : {"attention", "scored", "windowed", "fal", "chacal"}) {
    const std::string op = std::string(name) == "fal"      ? "fal"
                           : std::string(name) == "chacal" ? "chacal"
                                                           : "attention";
    catalog::Case c;
    c.attributes = {{"heads", "4"}, {"key_heads", "2"}};
    for (const char* input : {"q", "k", "v", "lengths"}) c.inputs[input] = host(input);
    if (op == "chacal") c.inputs["gamma"] = host("gamma");
    if (name == std::string("scored")) {
      for (const char* input : {"tau", "shift", "sink"}) c.inputs[input] = host(input);
    }
    if (name == std::string("windowed")) c.attributes["window"] = "3";

    for (const bool composed : {false, true}) {
      const catalog::Operation& operation = catalog::find(composed ? "composed_" + op : op);
      const catalog::Call call = prepare(operation, c, *reference(), DType::f64, true);
      Tape tape;
      const auto outputs = recorded(tape, [&] { return operation.run(call); });
      const std::string prefix = std::string(name) + ".";
      BOOST_TEST_CONTEXT(operation.name << ", " << name) {
        check_values(outputs[0].value.value(), host(prefix + "y").values, 1e-13);
        const catalog::HostTensor dy = host("dy");
        tape.backward(outputs[0].value,
                      Tensor::from(*reference(), dy.shape, DType::f64, dy.values));
        for (const auto& [input, values] : c.inputs) {
          if (input == "lengths") continue;
          BOOST_TEST_CONTEXT(input) {
            check_values(call.in(input).grad(), host(prefix + "d" + input).values, 1e-12);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_window_of_one_shows_each_token_itself) {
  const HeadProblem p(*reference(), DType::f64, {5, 3}, 2, 2, 4, 3);
  ScoreVars s = p.scores();
  s.window = 1;
  check_values(attention(s, p.values()).value().to_doubles(), p.v.to_doubles(), 1e-15);
}

BOOST_AUTO_TEST_CASE(a_temperature_of_zero_takes_the_mean) {
  const HeadProblem p(*reference(), DType::f64, {6}, 1, 1, 4, 1);
  ScoreVars s = p.scores();
  s.multiplier = Tensor::zeros(*reference(), {6, 1}, DType::f64);
  const std::vector<double> y = attention(s, p.values()).value().to_doubles();
  const std::vector<double> v = p.v.to_doubles();
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    sum += v[i];
    BOOST_TEST(std::abs(y[i] - sum / static_cast<double>(i + 1)) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(large_scores_do_not_overflow) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const HeadProblem p(*backend, DType::f32, {40, 17}, 2, 1, 16, 16, 3, 60);
    const ScoreVars s = p.scores(true);
    const HeadVars v = p.values(true);
    Tape tape;
    const Var y = recorded(tape, [&] { return attention(s, v); });
    tape.backward(
        y, Tensor::from(*backend, y.shape(), DType::f32,
                        std::vector<double>(static_cast<std::size_t>(y.value().size()), 1.0)));
    for (const Tensor& x : {y.value(), s.q.data.grad(), s.k.data.grad(), v.data.grad()}) {
      for (const double value : x.to_doubles()) BOOST_REQUIRE(std::isfinite(value));
    }
  }
}

BOOST_AUTO_TEST_CASE(sequences_do_not_see_each_other) {
  for (const char* name : {"attention", "fal", "chacal", "stick_attention", "tra_attention",
                           "entmax_attention", "sigmoid_attention"}) {
    const catalog::Operation& op = catalog::find(name);
    Rng rng(4, Purpose::test);
    catalog::Case both;
    both.attributes = {{"heads", "2"}};
    both.inputs["q"] = catalog::normals(rng, {7, 6});
    both.inputs["k"] = catalog::normals(rng, {7, 6});
    both.inputs["v"] = catalog::normals(rng, {7, 6});
    both.inputs["lengths"] = {{2}, {4, 3}};
    if (op.name == "chacal") both.inputs["gamma"] = catalog::constant({1}, 0.9);
    if (op.name == "tra_attention") both.inputs["pull"] = catalog::constant({7, 2}, -0.5);
    catalog::Case other = both;
    for (const char* input : {"q", "k", "v"}) {
      for (std::size_t i = 4 * 6; i < 7 * 6; ++i) other.inputs[input].values[i] = rng.normal();
    }
    for (const char* backend_name : {"reference", "cpu"}) {
      const auto backend = make_backend(backend_name);
      const auto a = tolerance::run(op, both, *backend, DType::f32);
      const auto b = tolerance::run(op, other, *backend, DType::f32);
      for (const char* what : {"y", "dq", "dk", "dv"}) {
        for (std::size_t i = 0; i < 4 * 6; ++i) {
          BOOST_REQUIRE(a.at(what).values[i] == b.at(what).values[i]);
        }
      }
      BOOST_TEST(a.at("y").values != b.at("y").values);
    }
  }
}

BOOST_AUTO_TEST_CASE(weights_are_shares_and_can_be_edited) {
  const HeadProblem p(*reference(), DType::f64, {5, 1, 4}, 4, 2, 3, 2);
  const ScoreVars s = p.scores();
  const std::vector<double> weights = attention_weights(s).to_doubles();
  BOOST_REQUIRE_EQUAL(weights.size(), 4u * (25 + 1 + 16));
  std::size_t at = 0;
  for (const std::size_t n : {5u, 1u, 4u}) {
    for (std::size_t row = 0; row < 4 * n; ++row, at += n) {
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) {
        BOOST_TEST(weights[at + j] >= 0);
        if (j > row % n) BOOST_TEST(weights[at + j] == 0);
        sum += weights[at + j];
      }
      BOOST_TEST(std::abs(sum - 1) < 1e-14);
    }
  }
  // The last argument of composed_attention() is a function. It must be called with every matrix of
  // weights, and the matrices that it returns must be used as the weights.
  at = 0;
  const Var y = composed_attention(s, p.values(), SoftmaxVars{}, [&](const Var& w, std::int64_t) {
    for (const double value : w.value().to_doubles()) {
      BOOST_TEST(std::abs(value - weights[at++]) < 1e-14);
    }
    return scale(w, 3);
  });
  std::vector<double> expected = attention(s, p.values()).value().to_doubles();
  for (double& value : expected) value *= 3;
  check_values(y.value(), expected, 1e-13);
}

BOOST_AUTO_TEST_CASE(weights_of_bf16_heads_are_those_of_their_values) {
  const auto backend = make_backend("cpu");
  HeadProblem narrow(*backend, DType::bf16, {9, 4}, 2, 1, 5, 3);
  HeadProblem wide = narrow;
  wide.q = Tensor::from(*backend, narrow.q.shape(), DType::f32, narrow.q.to_doubles());
  wide.k = Tensor::from(*backend, narrow.k.shape(), DType::f32, narrow.k.to_doubles());
  const auto weights = attention_weights(narrow.scores()).to_doubles();
  BOOST_TEST((weights == attention_weights(wide.scores()).to_doubles()));
}

BOOST_AUTO_TEST_CASE(a_checked_backend_names_the_bad_score) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const char* name : {"reference", "cpu"}) {
    const auto checked = make_backend(name, {.checked = true});
    const auto unchecked = make_backend(name);
    for (const double bad : {infinity, std::numeric_limits<double>::quiet_NaN()}) {
      for (Backend* backend : {checked.get(), unchecked.get()}) {
        HeadProblem p(*backend, DType::f32, {3, 4}, 2, 2, 2, 2);
        std::vector<double> k = p.k.to_doubles();
        k[5 * 4 + 2] = bad;  // the key of sequence 1, position 2, head 1
        p.k = Tensor::from(*backend, p.k.shape(), DType::f32, k);
        const auto all = [&](const std::function<void()>& op, const std::string& op_name) {
          BOOST_TEST(refusal(op) ==
                     (backend == unchecked.get()
                          ? "accepted"
                          : op_name + ": the score of query 2 and key 2 in head 1 of "
                                      "sequence 1 is not finite"));
        };
        const Tensor gamma = Tensor::from(*backend, {1}, DType::f32, std::vector<double>{0.9});
        all([&] { attention(p.scores(), p.values()); }, "attention");
        all([&] { fal(p.fal()); }, "fal");
        all([&] { chacal(p.scores(), p.values(), gamma); }, "chacal");
      }
    }
    // Without a causal mask, the error message contains the index of the query within its sequence.
    HeadProblem p(*checked, DType::f32, {3, 4}, 1, 1, 2, 2);
    std::vector<double> k = p.k.to_doubles();
    k[6 * 2] = infinity;
    p.k = Tensor::from(*checked, p.k.shape(), DType::f32, k);
    ScoreVars s = p.scores();
    s.queries = Segments(*checked, std::vector<std::int32_t>{5, 2});
    s.keys = p.segments;
    s.causal = false;
    BOOST_TEST(refusal([&] { attention(s, p.values()); }) ==
               "attention: the score of query 0 and key 3 in head 0 of sequence 1 is not finite");
    const HeadProblem good(*checked, DType::f32, {3, 4}, 2, 2, 2, 2);
    BOOST_CHECK_NO_THROW(attention(good.scores(), good.values()));
  }
}

BOOST_AUTO_TEST_CASE(each_wrong_argument_has_its_own_error) {
  const HeadProblem p(*reference(), DType::f64, {3, 4}, 4, 2, 3, 2);
  const auto message = [&](const std::function<void(ScoreVars&, HeadVars&)>& spoil) {
    ScoreVars s = p.scores();
    HeadVars v = p.values();
    spoil(s, v);
    return refusal([&] { attention(s, v); });
  };
  BOOST_TEST(message([](ScoreVars&, HeadVars&) {}) == "accepted");
  BOOST_TEST(
      message([](ScoreVars& s, HeadVars&) { s.k.heads = 3; }) ==
      "attention: k: expected a number of heads that divides 4, the number of heads of q, got 3");
  BOOST_TEST(
      message([](ScoreVars& s, HeadVars&) { s.k.first_column = 1; }) ==
      "attention: k: expected columns within [7, 6], got 2 heads of 3 columns from column 1");
  BOOST_TEST(message([](ScoreVars& s, HeadVars&) {
               s.queries = Segments(*reference(), std::vector<std::int32_t>{3, 3});
             }) == "attention: q: expected 6 rows, one for each token of the segments, got 7");
  BOOST_TEST(message([](ScoreVars& s, HeadVars&) {
               s.keys = Segments(*reference(), std::vector<std::int32_t>{2, 5});
             }) == "attention: segments: segment 0 has 3 queries but only 2 keys");
  const auto wrong = [&](Var ScoreVars::*part, const Shape& shape) {
    return message(
        [&](ScoreVars& s, HeadVars&) { s.*part = Tensor::zeros(*reference(), shape, DType::f64); });
  };
  BOOST_TEST(wrong(&ScoreVars::multiplier, {3, 1}) ==
             "attention: tau: expected [7, 4] f64, got [3, 1] f64");
  BOOST_TEST(wrong(&ScoreVars::decay, {2}) == "attention: shift: expected [7, 4] f64, got [2] f64");
  const SoftmaxVars short_sink{Tensor::zeros(*reference(), {1}, DType::f64)};
  BOOST_TEST(refusal([&] { attention(p.scores(), p.values(), short_sink); }) ==
             "attention: sink: expected [4] f64, got [1] f64");
  BOOST_TEST(message([](ScoreVars&, HeadVars& v) { v.heads = 1; }) ==
             "attention: v: expected 2 heads, got 1 of 2");
}

// All queries and keys are 1, so each of the n keys that a query sees has the weight 1 / n. The
// second segment has more keys than queries. The third segment has fewer keys than queries.
BOOST_AUTO_TEST_CASE(without_a_causal_mask_every_query_sees_every_key_of_its_segment) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const auto rows = [&](const std::vector<double>& values) {
      const std::int64_t count = std::ssize(values);
      return HeadVars{Tensor::from(*backend, {count, 1}, DType::f32, values), 0, 1, 1};
    };
    const ScoreVars s{.q = rows({1, 1, 1, 1, 1, 1, 1}),
                      .k = rows({1, 1, 1, 1, 1, 1}),
                      .queries = Segments(*backend, std::vector<std::int32_t>{2, 1, 4}),
                      .keys = Segments(*backend, std::vector<std::int32_t>{2, 3, 1}),
                      .causal = false};
    const HeadVars v = rows({1, 3, 6, 0, 9, -4});
    for (const Var& y : {attention(s, v), composed_attention(s, v)}) {
      check_values(y.value(), {2, 2, 5, -4, -4, -4, -4}, 1e-6);
    }
    check_values(attention_weights(s), {0.5, 0.5, 0.5, 0.5, 1. / 3, 1. / 3, 1. / 3, 1, 1, 1, 1},
                 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(only_plain_softmax_attention_works_without_a_causal_mask) {
  const HeadProblem p(*reference(), DType::f64, {3, 4}, 2, 2, 3, 2);
  ScoreVars s = p.scores();
  s.causal = false;
  const Var numbers = Tensor::zeros(*reference(), {7, 2}, DType::f64);
  const Var gamma = Tensor::zeros(*reference(), {1}, DType::f64);
  const std::string only =
      "causal: expected true, because only softmax attention works without a causal mask";
  const std::vector<RuleVars> others{StickBreakingVars{}, TraVars{numbers}, EntmaxVars{},
                                     SigmoidVars{}};
  for (const RuleVars& rule : others) {
    BOOST_TEST(refusal([&] { attention(s, p.values(), rule); }) == "attention: " + only);
    BOOST_TEST(refusal([&] { attention_weights(s, rule); }) == "attention_weights: " + only);
    BOOST_TEST(refusal([&] { composed_attention(s, p.values(), rule); }) ==
               "composed_attention: " + only);
  }
  BOOST_TEST(refusal([&] { chacal(s, p.values(), gamma); }) == "chacal: " + only);
  BOOST_TEST(refusal([&] { composed_chacal(s, p.values(), gamma); }) == "composed_chacal: " + only);
  const Reinforcement by{Tensor::from(*reference(), {1, 2}, std::vector<std::int32_t>{0, 0}),
                         Tensor::zeros(*reference(), {2}, DType::f64)};
  BOOST_TEST(refusal([&] { reinforced_attention(s, p.values(), by); }) == "reinforce: " + only);
  const auto checked = make_reference_backend({.checked = true});
  const HeadProblem hidden_own(*checked, DType::f64, {3, 4}, 2, 2, 3, 2);
  Scores unmasked = hidden_own.scores().value();
  unmasked.causal = false;
  BOOST_TEST(refusal([&] { check_scores("fal", unmasked, /*own_key=*/false); }) ==
             "find_bad_score: " + only);

  const auto message = [&](const std::function<void(ScoreVars&)>& spoil) {
    ScoreVars changed = s;
    spoil(changed);
    return refusal([&] { attention(changed, p.values()); });
  };
  BOOST_TEST(message([](ScoreVars&) {}) == "accepted");
  BOOST_TEST(message([](ScoreVars& x) { x.window = 2; }) ==
             "attention: window: expected 0 without a causal mask, got 2");
  BOOST_TEST(message([&](ScoreVars& x) { x.decay = numbers; }) ==
             "attention: shift: expected no tensor without a causal mask");
  BOOST_TEST(message([](ScoreVars& x) {
               x.keys = Segments(*reference(), std::vector<std::int32_t>{0, 7});
             }) == "attention: segments: segment 0 has 3 queries but only 0 keys");
}

BOOST_AUTO_TEST_CASE(memory_kept_for_backward_is_linear_in_the_length) {
  // Twice as many tokens may use at most about twice as much memory, because no matrix [tokens,
  // tokens] is stored.
  const auto backend = make_backend("cpu");
  const auto peak = [&](const std::string& op, std::int32_t tokens) {
    const HeadProblem p(*backend, DType::f32, {tokens}, 1, 1, 4, 4);
    const Tensor gamma = Tensor::from(*backend, {1}, DType::f32, std::vector<double>{0.9});
    const ScoreVars s = p.scores(true);
    const HeadVars v = p.values(true);
    backend->memory().reset_peak();
    Tape tape;
    const Var y = recorded(tape, [&] {
      if (op == "stick") return attention(s, v, StickBreakingVars{});
      if (op == "entmax") return attention(s, v, EntmaxVars{});
      if (op == "sigmoid") return attention(s, v, SigmoidVars{});
      if (op == "tra") {
        return attention(s, v, TraVars{Tensor::zeros(*backend, {tokens, 1}, DType::f32)});
      }
      if (op == "attention") return attention(s, v);
      if (op == "chacal") return chacal(s, v, gamma);
      return fal({.q = s.q, .k = s.k, .v = v, .queries = p.segments}).y;
    });
    tape.backward(y, Tensor::zeros(*backend, y.shape(), DType::f32));
    return backend->memory().use().peak;
  };
  for (const char* op : {"attention", "fal", "chacal", "stick", "tra", "entmax", "sigmoid"}) {
    const std::size_t one = peak(op, 768), two = peak(op, 1536);
    BOOST_TEST_CONTEXT(op << ": " << one << " and " << two << " bytes") {
      BOOST_TEST(two < one * 5 / 2);
      BOOST_TEST(two < std::size_t{1536} * 1536);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
