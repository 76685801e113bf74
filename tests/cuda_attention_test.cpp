#include <boost/test/unit_test.hpp>

#include "cuda/emulator/backend.h"
#include "tests/head_problem.h"
#include "tests/tolerance.h"

using namespace longhand;

// The attention family's kernels on the emulated device where sequences are longer than a tile and
// heads wider than a slice: several tiles that wait for one another, sums over slices.
BOOST_AUTO_TEST_SUITE(cuda_attention_test)

namespace {

struct Setting {
  DType activations;
  Math math;
  double unit;
};
constexpr Setting settings[] = {{DType::f32, Math::exact, 0x1p-24},
                                {DType::f32, Math::fast, 0x1p-11},  // TF32
                                {DType::f32, Math::bf16, 0x1p-9},
                                {DType::bf16, Math::fast, 0x1p-9}};

const catalog::Operation& operation_of(std::string_view name) {
  for (const catalog::Operation& operation : catalog::operations()) {
    if (operation.name == name) return operation;
  }
  throw std::invalid_argument(std::string(name));
}

}  // namespace

// Each case in one of the settings, in turn: a different one for each operation.
BOOST_AUTO_TEST_CASE(long_sequences_and_wide_heads_agree_with_the_reference) {
  const auto reference = make_reference_backend();
  std::size_t turn = 0;
  for (const char* name : {"attention", "chacal", "fal"}) {
    const catalog::Operation& operation = operation_of(name);
    Rng rng(3, Purpose::test);
    const std::vector<catalog::Case> cases = operation.large(rng);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Setting& s = settings[turn++ % std::size(settings)];
      const auto backend = make_emulated_cuda_backend({.math = s.math});
      const double unit = operation.products || s.activations == DType::bf16 ? s.unit : 0x1p-24;
      const auto values = tolerance::rounded(operation, cases[i], s.activations);
      const auto expected = tolerance::run(operation, values, *reference, DType::f64);
      const auto bounds =
          tolerance::bounds(operation, values, *reference, expected, s.activations, unit);
      const auto used = tolerance::compare(
          expected, tolerance::run(operation, values, *backend, s.activations), bounds);
      BOOST_TEST_CONTEXT(name << ", case " << i << ", " << s.activations << ", " << name_of(s.math)
                              << ": " << used.where) {
        BOOST_TEST(used.used <= 1.0);
      }
    }
  }
}

// Blocks that come in another order, and threads that run in another, find what they wait for.
BOOST_AUTO_TEST_CASE(the_order_of_blocks_changes_no_bit) {
  const auto backend = make_emulated_cuda_backend({.math = Math::bf16});
  for (const char* name : {"attention", "chacal", "fal"}) {
    const catalog::Operation& operation = operation_of(name);
    Rng rng(5, Purpose::test);
    const catalog::Case values = operation.large(rng).front();  // 150 tokens: three tiles
    const auto in_order = [&](emulator::Order order) {
      emulator::set_order(order, 1);
      auto results = tolerance::run(operation, values, *backend, DType::f32);
      emulator::set_order(emulator::Order::forward);
      return results;
    };
    const auto forward = in_order(emulator::Order::forward);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST((in_order(emulator::Order::backward) == forward));
      BOOST_TEST((in_order(emulator::Order::shuffled) == forward));
    }
  }
}

BOOST_AUTO_TEST_CASE(gamma_zero_is_softmax_attention_bit_for_bit) {
  for (const Setting& s : settings) {
    const auto backend = make_emulated_cuda_backend({.math = s.math});
    const auto chained = [&](const HeadProblem& p, double gamma) {
      const Var g(Tensor::from(*backend, {1}, DType::f32, std::vector<double>{gamma}));
      return chacal(p.scores(), p.values(), g).value().to_doubles();
    };
    for (const auto& [heads, key_heads, width] :
         {std::array<std::int64_t, 3>{1, 1, 16}, {4, 2, 5}, {1, 1, 130}}) {
      const HeadProblem p(*backend, s.activations, {100, 1, 33}, heads, key_heads, width, width);
      const auto softmax = attention(p.scores(), p.values()).value().to_doubles();
      BOOST_TEST_CONTEXT(s.activations << ", " << name_of(s.math) << ", width " << width) {
        BOOST_TEST((softmax == chained(p, 0)));
        BOOST_TEST((softmax != chained(p, 0.5)));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
