#include <algorithm>
#include <cmath>
#include <cstdlib>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "cuda/emulator/backend.h"
#include "tests/cuda_parity.h"
#include "tests/refusal.h"
#include "tests/same_bits.h"

BOOST_AUTO_TEST_SUITE(cuda_emulated_test)

using namespace longhand;

// Tests models, training and different orders of threads on the emulated device.
// cuda_parity_test.cpp compares every operation with the reference.

BOOST_AUTO_TEST_CASE(portable_math_is_refused) {
  expect_refusal([] { make_emulated_cuda_backend({.math = Math::portable}); },
                 "expected --math exact, fast or bf16, got portable");
}

// If cuBLASLt does not support a fused product, the backend uses a plain product and its own
// epilogue kernel.
BOOST_AUTO_TEST_CASE(results_agree_if_fused_products_are_refused) {
  const auto reference = make_reference_backend();
  const DType types[] = {DType::f32, DType::f32, DType::bf16};
  const Math maths[] = {Math::exact, Math::fast, Math::bf16};
  for (const char* name : {"matmul", "feed_forward"}) {
    const catalog::Operation& operation = catalog::find(name);
    Rng rng(3, Purpose::test);
    tolerance::Standard standard(operation, operation.cases(rng), *reference);
    for (std::size_t i = 0; i < std::size(maths); ++i) {
      const auto backend = make_emulated_cuda_backend({.math = maths[i]});
      for (const double share : {1.0, 0.5}) {
        emulator::refuse_products(share, 1);
        const tolerance::Worst worst = standard.compare(
            *backend, types[i], tolerance::unit(operation, types[i], maths[i], true));
        emulator::refuse_products(0);
        BOOST_TEST_CONTEXT(name << ", " << name_of(maths[i]) << ", share " << share << ": "
                                << worst.where) {
          BOOST_TEST(worst.used <= 1.0);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(whole_models_agree_with_the_reference) {
  cuda_parity::check_models(make_emulated_cuda_backend);
}

// The second training runs thread blocks, threads and streams in another order than the first. With
// the same order, the bits would be equal even if the result of a kernel depended on the order.
BOOST_AUTO_TEST_CASE(training_repeats_bit_for_bit) {
  int made = 0;
  cuda_parity::check_training_repeats([&](const BackendOptions& options) {
    const bool second = made++ % 2 != 0;
    emulator::set_order(second ? emulator::Order::interleaved : emulator::Order::forward, 1);
    emulator::defer_work(second, 1);
    return make_emulated_cuda_backend(options);
  });
  emulator::set_order(emulator::Order::forward);
  emulator::defer_work(false);
}

// If a barrier is missing, or two threads write to the same place, the bits depend on the order of
// threads. The test cases of the catalog use four settings (type and math mode) in turn. If
// LONGHAND_ALL_SETTINGS is set in the environment, each case uses all four.
BOOST_AUTO_TEST_CASE(the_order_of_threads_changes_no_bit) {
  const bool all_settings = std::getenv("LONGHAND_ALL_SETTINGS") != nullptr;
  const std::pair<DType, Math> settings[] = {{DType::f32, Math::exact},
                                             {DType::f32, Math::fast},
                                             {DType::f32, Math::bf16},
                                             {DType::bf16, Math::exact}};
  std::vector<std::shared_ptr<Backend>> backends;
  for (const auto& [_, math] : settings) {
    backends.push_back(make_emulated_cuda_backend({.math = math}));
  }
  const auto check = [&](const catalog::Operation& operation, const catalog::Case& drawn,
                         std::size_t setting, std::uint64_t seed) {
    const auto in_order = [&](emulator::Order order) {
      emulator::set_order(order, seed);
      auto results = tolerance::run(operation, drawn, *backends[setting], settings[setting].first);
      emulator::set_order(emulator::Order::forward);
      return results;
    };
    const auto forward = in_order(emulator::Order::forward);
    BOOST_TEST_CONTEXT(operation.name << ", " << settings[setting].first << ", "
                                      << name_of(settings[setting].second)) {
      BOOST_TEST((same_bits(in_order(emulator::Order::backward), forward)));
      BOOST_TEST((same_bits(in_order(emulator::Order::interleaved), forward)));
    }
  };
  std::size_t turn = 0;
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(3, Purpose::test);
    for (const catalog::Case& drawn : operation.cases(rng)) {
      ++turn;
      for (std::size_t i = 0; i < (all_settings ? std::size(settings) : 1); ++i) {
        check(operation, drawn, (turn + i) % std::size(settings), turn);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
