#include <algorithm>
#include <cmath>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "cuda/emulator/backend.h"
#include "tests/cuda_parity.h"

BOOST_AUTO_TEST_SUITE(cuda_emulated_test)

using namespace longhand;

// All operations of the catalog on the emulated device, compared with the reference. This finds
// every mistake of a CUDA kernel except low speed.

namespace {

/// Equal numbers, where NaN equals NaN.
bool same_bits(const tolerance::Results& a, const tolerance::Results& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return std::ranges::equal(a, b, [&](const auto& one, const auto& other) {
    return one.first == other.first &&
           std::ranges::equal(one.second.values, other.second.values, same);
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernels_agree_with_the_reference) {
  cuda_parity::check_operations(make_emulated_cuda_backend, cuda_parity::Cases::small);
}

BOOST_AUTO_TEST_CASE(whole_models_agree_with_the_reference) {
  cuda_parity::check_models(make_emulated_cuda_backend);
}

// The second training runs its threads in another order. Repeating the order would give the same
// bits even if a kernel depended on it.
BOOST_AUTO_TEST_CASE(training_repeats_bit_for_bit) {
  int made = 0;
  cuda_parity::check_training_repeats([&](const BackendOptions& options) {
    emulator::set_order(made++ % 2 == 0 ? emulator::Order::forward : emulator::Order::shuffled, 1);
    return make_emulated_cuda_backend(options);
  });
  emulator::set_order(emulator::Order::forward);
}

// A missing barrier, or two threads that write the same place, would change bits if the order
// changes.
BOOST_AUTO_TEST_CASE(the_order_of_threads_changes_no_bit) {
  for (const DType activations : {DType::f32, DType::bf16}) {
    for (const catalog::Operation& operation : catalog::operations()) {
      const auto backend = make_emulated_cuda_backend({.math = Math::exact});
      Rng rng(3, Purpose::test);
      for (const catalog::Case& drawn : operation.cases(rng)) {
        const auto in_order = [&](emulator::Order order) {
          emulator::set_order(order, 1);
          auto results = tolerance::run(operation, drawn, *backend, activations);
          emulator::set_order(emulator::Order::forward);
          return results;
        };
        const auto forward = in_order(emulator::Order::forward);
        BOOST_TEST_CONTEXT(operation.name << ", " << activations) {
          BOOST_TEST((same_bits(in_order(emulator::Order::backward), forward)));
          BOOST_TEST((same_bits(in_order(emulator::Order::shuffled), forward)));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
