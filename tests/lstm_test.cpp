#include "autograd/lstm.h"

#include <algorithm>
#include <cmath>
#include "tests/check.h"

#include "cuda/emulator/backend.h"
#include "tests/composed_twin.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"
#include "tests/refusal.h"

using namespace longhand;

// Tests the LSTM operation with a worked example, against a composition of simple operations, and
// with states that continue from a cache. Other tests check its gradients, its parity between
// backends, and that wrong implementations (mutants) are detected.
BOOST_AUTO_TEST_SUITE(lstm_test)

namespace {

using Doubles = std::vector<double>;

Segments lengths_of(Backend& backend, const std::vector<std::int32_t>& lengths) {
  return Segments(backend, lengths);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_worked_example_of_two_tokens_is_right) {
  const auto backend = make_reference_backend();
  const Doubles values{0, 0, 0, std::atanh(0.5), 0, 0, 0, 0};
  const Var x = Tensor::from(*backend, {2, 4}, DType::f64, values);
  const Var u = Tensor::zeros(*backend, {4, 1}, DType::f64);
  const Doubles y = lstm({x, 0, 1, 4}, lengths_of(*backend, {2}), u).value().to_doubles();
  BOOST_TEST(std::abs(y[0] - 0.5 * std::tanh(0.25)) < 1e-15);
  BOOST_TEST(std::abs(y[1] - 0.5 * std::tanh(0.125)) < 1e-15);
}

BOOST_AUTO_TEST_CASE(the_fused_lstm_agrees_with_separate_operations) {
  check_composed("lstm",
                 [](const catalog::Call& c) { return catalog::find("composed_lstm").run(c); });
}

BOOST_AUTO_TEST_CASE(states_continue_from_their_cache) {
  for (const auto& [backend, type] :
       {std::pair{make_reference_backend(), DType::f64}, std::pair{make_cpu_backend(), DType::f32},
        std::pair{make_emulated_cuda_backend({}), DType::f32}}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const Tensor x = random_tensor(*backend, {9, 40}, type, 3);
      const Var u = random_tensor(*backend, {40, 5}, master_type(type), 4, 0.4);
      const Doubles whole = lstm({x, 0, 2, 20}, lengths_of(*backend, {9}), u).value().to_doubles();
      const Tensor state = Tensor::zeros(*backend, {1, 20}, master_type(type));
      Doubles got;
      for (const auto& [first, count] :
           std::vector<std::pair<std::int64_t, std::int32_t>>{{0, 4}, {4, 1}, {5, 4}}) {
        const Var y = lstm({x.slice(first, count), 0, 2, 20}, lengths_of(*backend, {count}), u,
                           {.before = state, .after = state});
        std::ranges::copy(y.value().to_doubles(), std::back_inserter(got));
      }
      BOOST_TEST((got == whole));
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  const auto backend = make_reference_backend();
  const Var x = random_tensor(*backend, {3, 8}, DType::f64, 3);
  const Var u = random_tensor(*backend, {8, 2}, DType::f64, 4);
  BOOST_TEST(refusal([&] {
               lstm({x, 0, 1, 6}, lengths_of(*backend, {3}), u);
             }) == "lstm: x: expected heads whose width is a multiple of 4, got 6 columns");
  BOOST_TEST(refusal([&] {
               lstm({x, 0, 1, 4}, lengths_of(*backend, {3}), u);
             }) == "lstm: u: expected [4, 1] f64, got [8, 2] f64");
  BOOST_TEST(refusal([&] {
               lstm({x, 0, 1, 8}, lengths_of(*backend, {2}), u);
             }) ==
             "lstm: segments: expected consecutive segments that cover all 3 rows, got segments of "
             "2 rows in total");
}

BOOST_AUTO_TEST_SUITE_END()
