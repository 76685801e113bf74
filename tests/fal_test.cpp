#include "autograd/fal.h"

#include "tests/check.h"

#include "tests/head_problem.h"
#include "tests/recorded.h"

BOOST_AUTO_TEST_SUITE(fal_test)

using namespace longhand;

namespace {

struct Answer {
  std::vector<double> y, dq, dk, dv;
  std::vector<std::int32_t> match;
};

/// Runs one FAL head of width 1 forward and backward. All entries of dy, the gradient of its output
/// y, are 1.
Answer answer(Backend& backend, const std::vector<double>& q, const std::vector<double>& k,
              const std::vector<double>& v, const std::vector<std::int32_t>& lengths) {
  const auto one_column = [&](const std::vector<double>& values) {
    return HeadVars{Var(Tensor::from(backend, {static_cast<std::int64_t>(values.size()), 1},
                                     DType::f32, values),
                        true),
                    0, 1, 1};
  };
  const FalVars in{.q = one_column(q),
                   .k = one_column(k),
                   .v = one_column(v),
                   .queries = Segments(backend, lengths)};
  Tape tape;
  const FalResult r = recorded(tape, [&] { return fal(in); });
  tape.backward(r.y,
                Tensor::from(backend, r.y.shape(), DType::f32, std::vector<double>(q.size(), 1.0)));
  return {r.y.value().to_doubles(), in.q.data.grad().to_doubles(), in.k.data.grad().to_doubles(),
          in.v.data.grad().to_doubles(), r.match.to_ints()};
}

using Values = std::vector<double>;
using Ints = std::vector<std::int32_t>;

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_the_docs_is_right) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const Answer a = answer(*backend, {1, -1, -2, 1}, {1, -1, 0, 3}, {5, 6, 7, 8}, {4});
    BOOST_TEST((a.match == Ints{-1, -1, 1, 0}));
    BOOST_TEST((a.y == Values{0, 0, 14, 6}));
    BOOST_TEST((a.dq == Values{0, 0, -7, 6}));
    BOOST_TEST((a.dk == Values{6, -14, 0, 0}));
    BOOST_TEST((a.dv == Values{0, 1, 2, 0}));
  }
}

BOOST_AUTO_TEST_CASE(without_a_qualifying_key_output_and_gradients_are_exactly_zero) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    std::vector<double> q, k, v;
    for (int i = 0; i < 100; ++i) {
      q.push_back(1 + i);
      k.push_back(-1e-30 - i);
      v.push_back(i);
    }
    const Answer a = answer(*backend, q, k, v, {60, 1, 39});
    const Values zeros(100, 0.0);
    BOOST_TEST((a.match == Ints(100, -1)));
    BOOST_TEST((a.y == zeros));
    BOOST_TEST((a.dq == zeros));
    BOOST_TEST((a.dk == zeros));
    BOOST_TEST((a.dv == zeros));
  }
}

BOOST_AUTO_TEST_CASE(a_score_of_exactly_zero_does_not_qualify) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const Answer zeros = answer(*backend, {1, 1, 1}, {0, -0.0, 0}, {5, 6, 7}, {3});
    BOOST_TEST((zeros.match == Ints{-1, -1, -1}));
    const Answer tiny = answer(*backend, {1, 1, 1}, {1e-30, 0, 0}, {5, 6, 7}, {3});
    BOOST_TEST((tiny.match == Ints{-1, 0, 0}));
  }
}

BOOST_AUTO_TEST_CASE(the_value_after_the_match_can_belong_to_the_query_itself) {
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    const Answer a = answer(*backend, {1, 1, 1}, {2, 3, 4}, {5, 6, 7}, {3});
    BOOST_TEST((a.match == Ints{-1, 0, 1}));
    BOOST_TEST((a.y == Values{0, 2 * 6, 3 * 7}));
  }
}

BOOST_AUTO_TEST_CASE(the_last_match_is_found_at_any_distance) {
  // Only the key with the index `only` has a positive score, and all later queries must find it.
  // Kernels process the keys in blocks. The values of `only` are indices at the beginning, in the
  // middle and at the end of such blocks.
  for (const char* name : {"reference", "cpu"}) {
    const auto backend = make_backend(name);
    for (const std::size_t only : {0u, 1u, 15u, 16u, 17u, 63u, 64u, 65u, 127u, 200u, 255u}) {
      std::vector<double> q(257, 1), k(257, -1), v(257);
      k[only] = 2;
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
      const Answer a = answer(*backend, q, k, v, {257});
      for (std::size_t i = 0; i < q.size(); ++i) {
        const bool found = i > only;
        BOOST_REQUIRE_EQUAL(a.match[i], found ? static_cast<int>(only) : -1);
        BOOST_REQUIRE_EQUAL(a.y[i], found ? 2 * static_cast<double>(only + 1) : 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
