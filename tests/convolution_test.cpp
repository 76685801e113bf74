#include "autograd/convolution.h"

#include <algorithm>
#include "tests/check.h"

#include "cuda/emulator/backend.h"
#include "tests/random_tensor.h"
#include "tests/recorded.h"
#include "tests/refusal.h"

using namespace longhand;

// Tests short convolutions with worked examples, and with sequences that are processed in pieces.
// The tests of the op catalog check the gradients, compare the backends and detect deliberate bugs.
BOOST_AUTO_TEST_SUITE(convolution_test)

namespace {

using Doubles = std::vector<double>;

HeadVars all_of(const Var& x) { return {x, 0, 1, x.value().columns()}; }

Segments sequences_of(Backend& backend, const std::vector<std::int32_t>& lengths) {
  return Segments(backend, lengths);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_token_is_mixed_with_earlier_tokens_of_its_sequence) {
  const auto backend = make_reference_backend();
  const auto leaf = [&](const Shape& shape, const Doubles& values) {
    return Var(Tensor::from(*backend, shape, DType::f64, values), true);
  };
  const Var x = leaf({4, 1}, {1, 2, 3, 10}), weight = leaf({3, 1}, {1, 0.5, 0.25});
  Tape tape;
  const Var y = recorded(tape, [&] {
    return short_convolution(all_of(x), sequences_of(*backend, {3, 1}), weight);
  });
  BOOST_TEST((y.value().to_doubles() == Doubles{1, 2.5, 4.25, 10}));
  tape.backward(y, Tensor::from(*backend, {4, 1}, DType::f64, Doubles{0, 0, 1, 2}));
  BOOST_TEST((x.grad().to_doubles() == Doubles{0.25, 0.5, 1, 2}));
  BOOST_TEST((weight.grad().to_doubles() == Doubles{23, 2, 1}));
}

BOOST_AUTO_TEST_CASE(sequences_continue_from_their_cache) {
  for (const auto& backend :
       {make_reference_backend(), make_cpu_backend(), make_emulated_cuda_backend({})}) {
    BOOST_TEST_CONTEXT(backend->name()) {
      const Tensor x = random_tensor(*backend, {9, 5}, DType::f32, 3);
      const Tensor weight = random_tensor(*backend, {4, 5}, DType::f32, 4);
      const Doubles whole =
          short_convolution(all_of(x), sequences_of(*backend, {9}), weight).value().to_doubles();
      const Tensor tail = Tensor::zeros(*backend, {1, 15}, DType::f32);
      Doubles got;
      for (const auto& [first, count] :
           std::vector<std::pair<std::int64_t, std::int32_t>>{{0, 1}, {1, 1}, {2, 5}, {7, 2}}) {
        const Var y =
            short_convolution(all_of(x.slice(first, count)), sequences_of(*backend, {count}),
                              weight, {.before = tail, .after = tail});
        std::ranges::copy(y.value().to_doubles(), std::back_inserter(got));
      }
      BOOST_TEST((got == whole));
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_refused) {
  const auto backend = make_reference_backend();
  const Tensor x = random_tensor(*backend, {3, 2}, DType::f64, 3);
  const auto refused = [&](const Shape& weight, std::int32_t tokens) {
    return refusal([&] {
      short_convolution(all_of(x), sequences_of(*backend, {tokens}),
                        Tensor::zeros(*backend, weight, DType::f64));
    });
  };
  BOOST_TEST(refused({9, 2}, 3) == "short_convolution: weight: expected 1 to 8 rows, got 9");
  BOOST_TEST(refused({4, 3}, 3) ==
             "short_convolution: weight: expected [4, 2] f64, got [4, 3] f64");
  BOOST_TEST(
      refused({4, 2}, 2) ==
      "short_convolution: segments: expected consecutive segments that cover all 3 rows of x, "
      "got segments of 2 rows in total");
}

BOOST_AUTO_TEST_SUITE_END()
