#include <cmath>
#include <limits>
#include "tests/check.h"

#include "autograd/composed_attention.h"
#include "core/error.h"
#include "tests/head_problem.h"
#include "tests/recorded.h"
#include "tests/refusal.h"

using namespace longhand;

// Tests attention whose weights follow other rules than softmax: worked examples, limits, and which
// keys of a row are read. The tests of the catalog of operations cover gradients, parity of
// backends and mutants (deliberate errors).
BOOST_AUTO_TEST_SUITE(rules_test)

namespace {

using Doubles = std::vector<double>;

void check_close(const Doubles& got, const Doubles& expected, double tolerance) {
  BOOST_REQUIRE_EQUAL(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    BOOST_TEST_CONTEXT("entry " << i << ": expected " << expected[i] << ", got " << got[i]) {
      BOOST_TEST(std::abs(got[i] - expected[i]) <= tolerance);
    }
  }
}

/// Keys of width 1 and queries that are all 1, so that each score equals its key.
ScoreVars of_keys(Backend& backend, const Doubles& keys) {
  const Segments one(backend, std::vector<std::int32_t>{static_cast<std::int32_t>(keys.size())});
  return {.q = {Var(column(backend, Doubles(keys.size(), 1.0)), true), 0, 1, 1},
          .k = {Var(column(backend, keys), true), 0, 1, 1},
          .queries = one,
          .scale = 1};
}

Doubles last_row(const Tensor& weights) {
  const Doubles all = weights.to_doubles();
  const auto n = static_cast<std::ptrdiff_t>(std::lround(std::sqrt(double(all.size()))));
  return {all.end() - n, all.end()};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_stick_is_broken_as_worked_out) {
  const auto backend = make_reference_backend();
  // sigmoid(ln x) = x / (1 + x). So the sigmoids of the scores 0, ln 2 and ln 3 are 1/2, 2/3 and
  // 3/4. In stick-breaking, a query does not see its own key.
  const ScoreVars s = of_keys(*backend, {0, std::log(2), std::log(3), 5});
  check_close(last_row(attention_weights(s, StickBreakingVars{})), {1.0 / 24, 1.0 / 6, 3.0 / 4, 0},
              1e-15);
  const HeadVars v{Var(column(*backend, {24, 6, 4, 100}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v, StickBreakingVars{}); });
  check_close(y.value().to_doubles(), {0, 12, 8, 5}, 1e-13);
  tape.backward(y, column(*backend, {0, 0, 0, 1}));
  check_close(v.data.grad().to_doubles(), {1.0 / 24, 1.0 / 6, 3.0 / 4, 0}, 1e-15);
  // The products P_j dP_j of the three visible keys are 1, 1 and 3. The gradient of a score s_j is
  //   dS_j = P_j dP_j - sigmoid(s_j) (P_0 dP_0 + ... + P_j dP_j).
  check_close(s.k.data.grad().to_doubles(), {0.5, 1 - 2.0 * 2 / 3, 3 - 5 * 0.75, 0}, 1e-14);
}

BOOST_AUTO_TEST_CASE(positive_scores_are_counted_as_worked_out) {
  const auto backend = make_reference_backend();
  ScoreVars s = of_keys(*backend, {std::log(2), -1, std::log(3), std::log(4)});
  const TraVars rule{Var(column(*backend, Doubles(4, -std::log(2))), true)};
  // The weight of a key with a positive score is proportional to e^score / 2^n, where n is the
  // number of positive scores from this key on. From the last key backward, e^score / 2^n is 4/2,
  // 3/4 and 2/8, with the sum 3.
  check_close(last_row(attention_weights(s, rule)), {1.0 / 12, 0, 1.0 / 4, 2.0 / 3}, 1e-15);
  const HeadVars v{Var(column(*backend, {12, 7, 4, 3}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v, rule); });
  check_close(y.value().to_doubles(), {12, 12, (3.0 * 4 + 12) / 4, 4}, 1e-13);
  tape.backward(y, column(*backend, {0, 0, 0, 1}));
  // For the last query, dy . y = 4, so dS = P (dP - 4) is 8/12, 0, 0 and -2/3. The scores of a
  // query contain its count_bias times n_j, the number of positive scores from key j on. Its
  // gradient is therefore sum_j dS_j n_j. For the last query, n is 3 for the first key and 1 for
  // the last key.
  check_close(rule.count_bias.grad().to_doubles(), {0, 0, 0, 3 * 2.0 / 3 - 2.0 / 3}, 1e-14);
  check_close(s.k.data.grad().to_doubles(), {2.0 / 3, 0, 0, -2.0 / 3}, 1e-14);

  s = of_keys(*backend, {-1, -2, -3});  // no score is positive
  const TraVars three{column(*backend, Doubles(3, -1.0))};
  const HeadVars numbers{Var(column(*backend, {1, 2, 3})), 0, 1, 1};
  check_close(attention(s, numbers, three).value().to_doubles(), {0, 0, 0}, 0);
}

BOOST_AUTO_TEST_CASE(a_threshold_is_found_as_worked_out) {
  const auto backend = make_reference_backend();
  // Entmax has the weights max(0, score / 2 - t)^2, where t is such that they sum to 1. Half of
  // each score is 0, 0.2, -1 and 0.2. As t is about -0.44, the key with -1 has weight 0. The
  // other three numbers have the mean 0.4 / 3 and the variance 0.08 / 9. So the sum of the weights
  // is 3 ((mean - t)^2 + 0.08 / 9).
  const double u = std::sqrt(1.0 / 3 - 0.08 / 9), mean = 0.4 / 3, t = mean - u;
  const ScoreVars s = of_keys(*backend, {0, 0.4, -2, 0.4});
  const Doubles expected{t * t, (0.2 - t) * (0.2 - t), 0, (0.2 - t) * (0.2 - t)};
  check_close(last_row(attention_weights(s, EntmaxVars{})), expected, 1e-14);
  double sum = 0;
  for (const double p : expected) sum += p;
  BOOST_TEST(std::abs(sum - 1) < 1e-15);
  const HeadVars v{Var(column(*backend, {3, 1, 7, 2}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v, EntmaxVars{}); });
  tape.backward(y, column(*backend, {0, 0, 0, 1}));
  const double roots = -t + 2 * (0.2 - t), d = (-t * 3 + (0.2 - t) * 3) / roots;
  check_close(s.k.data.grad().to_doubles(),
              {-t * (3 - d), (0.2 - t) * (1 - d), 0, (0.2 - t) * (2 - d)}, 1e-14);
  check_close(v.data.grad().to_doubles(), expected, 1e-14);
}

BOOST_AUTO_TEST_CASE(a_sigmoid_subtracts_the_logarithm_of_the_number_of_keys) {
  const auto backend = make_reference_backend();
  const ScoreVars s = of_keys(*backend, {0, std::log(3), std::log(9)});
  const Doubles expected{0.25, 0.5, 0.75};
  check_close(last_row(attention_weights(s, SigmoidVars{})), expected, 1e-15);
  const HeadVars v{Var(column(*backend, {4, 2, 8}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v, SigmoidVars{}); });
  BOOST_TEST(std::abs(y.value().to_doubles()[2] - 8) < 1e-14);
  tape.backward(y, column(*backend, {0, 0, 1}));
  check_close(s.k.data.grad().to_doubles(), {3.0 / 16 * 4, 0.25 * 2, 3.0 / 16 * 8}, 1e-14);
  check_close(v.data.grad().to_doubles(), expected, 1e-15);

  // Sigmoid attention subtracts ln n from scores, where n is the number of visible keys. With a
  // window of two keys, ln 2 is subtracted from the scores ln 3 and ln 9.
  ScoreVars narrow = s;
  narrow.window = 2;
  check_close(last_row(attention_weights(narrow, SigmoidVars{})), {0, 3.0 / 5, 9.0 / 11}, 1e-15);
}

// Under entmax, keys whose scores are more than 2 below the largest score have weight 0. If all
// other scores are that low, the key with the largest score has all of the weight.
BOOST_AUTO_TEST_CASE(scores_far_below_have_no_weight) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const auto of = [&](const Doubles& values) {
      return all_columns(Var(Tensor::from(*backend, {4, 1}, DType::f32, values), true), 1);
    };
    const ScoreVars s{.q = of({1, 1, 1, 1}),
                      .k = of({5, 2.9, -1000, 4}),
                      .queries = Segments(*backend, std::vector<std::int32_t>{4}),
                      .scale = 1};
    const HeadVars v = of({3, 10, 20, 30});
    Tape tape;
    const Var y = recorded(tape, [&] { return attention(s, v, EntmaxVars{}); });
    const Doubles got = y.value().to_doubles();
    for (const std::size_t i : {0u, 1u, 2u}) BOOST_TEST(got[i] == 3);
    BOOST_TEST(got[3] > 3.5);
    tape.backward(y, Tensor::from(*backend, {4, 1}, DType::f32, Doubles{1, 1, 1, 0}));
    check_close(s.k.data.grad().to_doubles(), {0, 0, 0, 0}, 0);
  }
}

// Under every rule, a shift c adds c_i - c_j to the score of query i and key j. In this test, the
// score of key j is the key itself. For the last query, adding c_i - c_j to key j must therefore
// have the same effect as the shift.
BOOST_AUTO_TEST_CASE(a_shift_is_part_of_the_score) {
  const Doubles keys{0.7, -0.2, 1.5, 0.4, 0.9}, c{0.3, 0.1, -0.4, -0.5, -1.1};
  Doubles lower = keys;
  for (std::size_t j = 0; j < keys.size(); ++j) lower[j] += c.back() - c[j];
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const DType type = std::string_view(name) == "cpu" ? DType::f32 : DType::f64;
    const auto of = [&](const Doubles& values) {
      return Tensor::from(*backend, {std::ssize(values), 1}, type, values);
    };
    for (const RuleVars& rule : {RuleVars(SoftmaxVars{}), RuleVars(StickBreakingVars{}),
                                 RuleVars(TraVars{of(Doubles(5, -0.3))}), RuleVars(EntmaxVars{}),
                                 RuleVars(SigmoidVars{})}) {
      const auto scores = [&](const Doubles& of_keys) {
        return ScoreVars{.q = {Var(of(Doubles(5, 1.0))), 0, 1, 1},
                         .k = {Var(of(of_keys)), 0, 1, 1},
                         .queries = Segments(*backend, std::vector<std::int32_t>{5}),
                         .scale = 1};
      };
      ScoreVars shifted = scores(keys);
      shifted.decay = of(c);
      check_close(last_row(attention_weights(shifted, rule)),
                  last_row(attention_weights(scores(lower), rule)), 1e-6);
      const HeadVars v{Var(of({1, -2, 3, 5, 8})), 0, 1, 1};
      const Doubles got = attention(shifted, v, rule).value().to_doubles();
      const Doubles same = attention(scores(lower), v, rule).value().to_doubles();
      BOOST_TEST(std::abs(got.back() - same.back()) < 2e-5);
    }
  }
}

// A shift c adds c_i - c_j to the score of query i and key j. In stick-breaking, a row of dS (the
// gradient of the scores) does not sum to 0. So the query's own c_i also receives a gradient.
BOOST_AUTO_TEST_CASE(a_stick_depends_on_the_querys_own_shift) {
  const auto backend = make_reference_backend();
  ScoreVars s = of_keys(*backend, {0, std::log(2), std::log(3), 5});
  s.decay = Var(column(*backend, Doubles(4, 0.0)), true);
  const HeadVars v{Var(column(*backend, {24, 6, 4, 100}), true), 0, 1, 1};
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, v, StickBreakingVars{}); });
  tape.backward(y, column(*backend, {0, 0, 0, 1}));
  // The gradients dS of the scores are those of the test a_stick_is_broken_as_worked_out: 1/2, -1/3
  // and -3/4. Their sum is -7/12.
  check_close(s.decay.grad().to_doubles(), {-0.5, 1.0 / 3, 0.75, -7.0 / 12}, 1e-14);
}

// If scores are large, stick-breaking gives all weight to the last key with a positive score, as
// FAL does. TRA does the same if its input count_bias is very negative.
BOOST_AUTO_TEST_CASE(in_the_limit_the_last_key_that_agrees_is_chosen) {
  const auto backend = make_reference_backend();
  const HeadProblem p(*backend, DType::f64, {200}, 1, 1, 8, 1, 5);
  const std::vector<std::int32_t> match = fal(p.fal()).match.to_ints();
  for (const RuleVars& rule :
       {RuleVars(StickBreakingVars{}), RuleVars(TraVars{column(*backend, Doubles(200, -1e9))})}) {
    ScoreVars s = p.scores();
    s.scale = 1e5;
    const Doubles weights = attention_weights(s, rule).to_doubles();
    for (std::size_t i = 0; i < 200; ++i) {
      // Unlike FAL, TRA lets a query see its own key. Rows in which this key has weight are
      // skipped.
      if (std::holds_alternative<TraVars>(rule) && weights[i * 200 + i] > 0) continue;
      for (std::size_t j = 0; j < 200; ++j) {
        const double expected = static_cast<std::int32_t>(j) == match[i] ? 1 : 0;
        BOOST_REQUIRE(std::abs(weights[i * 200 + j] - expected) < 1e-3);
      }
    }
  }
}

// Stick-breaking reads keys from the last to the first. If no row of a panel (block of queries) has
// any weight left, earlier keys are not read. In this test, these keys are NaN and would make the
// results NaN.
BOOST_AUTO_TEST_CASE(a_used_up_row_reads_no_further) {
  const auto backend = make_cpu_backend();
  const std::int64_t n = 700, width = 4, unread = 256;
  Rng rng(3, Purpose::test);
  Doubles q(static_cast<std::size_t>(n * width)), k(q.size()), v(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    q[i] = 1 + rng.uniform();
    k[i] = static_cast<std::int64_t>(i) < unread * width ? std::numeric_limits<double>::quiet_NaN()
                                                         : 1 + rng.uniform();
    v[i] = rng.normal();
  }
  const auto of = [&](const Doubles& values) {
    return all_columns(Var(Tensor::from(*backend, {n, width}, DType::f32, values), true), 1);
  };
  ScoreVars s{.q = of(q),
              .k = of(k),
              .queries = Segments(*backend, std::vector<std::int32_t>{static_cast<int>(n)})};
  const HeadVars values = of(v);
  Tape tape;
  const Var y = recorded(tape, [&] { return attention(s, values, StickBreakingVars{}); });
  Doubles dy(q.size(), 0.0);
  const auto far = static_cast<std::size_t>((unread + 128) * width);
  for (std::size_t i = far; i < dy.size(); ++i) dy[i] = 1;
  tape.backward(y, Tensor::from(*backend, {n, width}, DType::f32, dy));
  for (const Tensor& x : {y.value(), s.q.data.grad(), s.k.data.grad(), values.data.grad()}) {
    const Doubles got = x.to_doubles();
    for (std::size_t i = far; i < dy.size(); ++i) BOOST_REQUIRE(std::isfinite(got[i]));
  }
}

// Tests long rows in f32. The error of y must not exceed what rounding explains. The bound for
// stick-breaking is the sum of two errors:
//   - Scores s_j have errors of at most 2^-24 |q| |k| scale. They change y by at most 2 max |v|
//   times as much, because sum_j |dy / ds_j| <= 2 max |v|.
//   - The remaining weight is multiplied by a factor for each of n keys. Rounding these products
//   and the sum of y changes y by about 2^-24 sqrt(n) max |v|.
// The numbers in q, k and v are random with the standard deviation `deviation`. For these numbers,
// |v| < 4 deviation and |q| |k| scale < 10 deviation^2.
BOOST_AUTO_TEST_CASE(long_rows_keep_their_digits) {
  const auto reference = make_reference_backend(), cpu = make_cpu_backend();
  for (const double deviation : {0.3, 1.5, 6.0}) {
    const HeadProblem p(*reference, DType::f32, {1500}, 1, 1, 8, 3, 7, deviation);
    const HeadProblem same(*cpu, DType::f32, {1500}, 1, 1, 8, 3, 7, deviation);
    const auto output = [](const HeadProblem& of, const RuleVars& rule, double gate = 0) {
      ScoreVars s = of.scores();
      s.math = Math::exact;
      if (gate != 0) {
        Doubles c;
        for (int i = 0; i < 1500; ++i) c.push_back(gate * i);
        s.decay = Tensor::from(of.q.backend(), {1500, 1}, DType::f32, c);
      }
      return attention(s, of.values(), rule).value().to_doubles();
    };
    const double of_sticks =
        0x1p-24 * 4 * deviation * (20 * deviation * deviation + std::sqrt(1500.0));
    const StickBreakingVars stick;
    const EntmaxVars entmax;
    const SigmoidVars sigmoid;
    const auto tra = [](const HeadProblem& of) {
      return TraVars{Tensor::from(of.q.backend(), {1500, 1}, DType::f32, Doubles(1500, -0.01))};
    };
    check_close(output(same, stick), output(p, stick), of_sticks);
    check_close(output(same, tra(same)), output(p, tra(p)), 1e-5 * deviation * deviation);
    check_close(output(same, entmax), output(p, entmax), 1e-5 * deviation * deviation);
    check_close(output(same, sigmoid), output(p, sigmoid), 1e-5 * deviation * deviation);
    for (const double gate :
         // The shift of token i is i times one of these numbers, which is exact in f32. A rounded
         // shift could change the sign of a score, on which TRA depends.
         {-0.0625, 0.015625}) {
      check_close(output(same, stick, gate), output(p, stick, gate), of_sticks);
      check_close(output(same, tra(same), gate), output(p, tra(p), gate),
                  2e-5 * deviation * deviation);
      check_close(output(same, entmax, gate), output(p, entmax, gate),
                  2e-5 * deviation * deviation);
    }
  }
}

BOOST_AUTO_TEST_CASE(tra_requires_its_count_bias) {
  const auto backend = make_reference_backend();
  const HeadProblem p(*backend, DType::f64, {3}, 1, 1, 2, 2);
  BOOST_TEST(contains(refusal([&] { attention(p.scores(), p.values(), TraVars{}); }),
                      "attention: pull: expected"));
}

// Tests scores whose exponentials overflow, including scores of keys that no query sees. The
// largest scores without overflow are about 88 in f32 and 709 in f64.
BOOST_AUTO_TEST_CASE(composed_sticks_take_scores_of_any_size) {
  const auto reference = make_reference_backend();
  for (const DType type : {DType::f32, DType::f64}) {
    const auto of = [&](const Doubles& values) {
      const Shape shape{static_cast<std::int64_t>(values.size()), 1};
      return all_columns(Var(Tensor::from(*reference, shape, type, values), true), 1);
    };
    const double far = type == DType::f32 ? 200 : 2000;
    const Doubles keys{0.5, far, -0.7, 0, -far, 0.3, far}, ones(7, 1.0);
    const auto gradients = [&](bool fused) {
      const ScoreVars s{.q = of(ones),
                        .k = of(keys),
                        .queries = Segments(*reference, std::vector<std::int32_t>{7}),
                        .scale = 1};
      const StickBreakingVars stick;
      const HeadVars v = of({3, 1, 2, -5, 4, 7, 6});
      Tape tape;
      const Var y = recorded(
          tape, [&] { return fused ? attention(s, v, stick) : composed_attention(s, v, stick); });
      Doubles all = y.value().to_doubles();
      tape.backward(y, Tensor::from(*reference, {7, 1}, type, ones));
      for (const Var& x : {s.q.data, s.k.data, v.data}) {
        const Doubles grad = x.grad().to_doubles();
        all.insert(all.end(), grad.begin(), grad.end());
      }
      return all;
    };
    check_close(gradients(false), gradients(true), type == DType::f32 ? 1e-4 : 1e-12);
  }
}

// If the terms of q . k cancel, the score is 0 for every scale. This holds because the finished
// product is multiplied by the scale. Operands that are scaled and rounded might not cancel.
BOOST_AUTO_TEST_CASE(a_score_that_cancels_is_not_positive_on_any_backend) {
  for (const std::int32_t tokens : {2, 9}) {  // 2 tokens are processed by rows, 9 by panels
    for (const char* name : {"reference", "cpu"}) {
      const auto backend = make_backend(name);
      for (int i = 0; i < 64; ++i) {
        const double a = 1 + i / 8 / 8.0, b = 0.5 + i % 8 / 8.0;
        Doubles q, k;
        for (std::int32_t t = 0; t < tokens; ++t) {
          q.insert(q.end(), {a, b});
          k.insert(k.end(), {b, -a});
        }
        const auto of = [&](const Doubles& values) {
          return all_columns(Var(Tensor::from(*backend, {tokens, 2}, DType::f32, values)), 1);
        };
        const ScoreVars s{.q = of(q),
                          .k = of(k),
                          .queries = Segments(*backend, std::vector<std::int32_t>{tokens}),
                          .scale = 0.5 + i / 100.0};
        const TraVars rule{Tensor::from(*backend, {tokens, 1}, DType::f32,
                                        Doubles(static_cast<std::size_t>(tokens), -0.5))};
        const Doubles y = attention(s, of(k), rule).value().to_doubles();
        BOOST_TEST(y == Doubles(y.size(), 0.0), name << ", " << a << " and " << b);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
