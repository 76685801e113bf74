#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>

#include "core/error.h"
#include "cuda/emulator/backend.h"
#include "tests/tolerance.h"

using namespace longhand;

// The CUDA kernels on the emulated device, over the catalog, held against the reference: what is
// wrong with a kernel but for its speed shows here.
BOOST_AUTO_TEST_SUITE(cuda_emulated_test)

namespace {

struct Setting {
  DType activations;
  Math math;
};

/// The same numbers, where NaN is the same as NaN.
bool same_bits(const tolerance::Results& a, const tolerance::Results& b) {
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return std::ranges::equal(a, b, [&](const auto& one, const auto& other) {
    return one.first == other.first && std::ranges::equal(one.second, other.second, same);
  });
}

constexpr Setting settings[] = {{DType::f32, Math::exact},
                                {DType::f32, Math::fast},
                                {DType::f32, Math::bf16},
                                {DType::bf16, Math::fast}};

}  // namespace

BOOST_AUTO_TEST_CASE(the_kernels_agree_with_the_reference) {
  const auto reference = make_reference_backend();
  for (const catalog::Operation& operation : catalog::operations()) {
    for (const Setting& s : settings) {
      const auto backend = make_emulated_cuda_backend({.math = s.math});
      // TF32 keeps 10 bits of fraction of an operand.
      const double unit = operation.products && s.math == Math::fast && s.activations == DType::f32
                              ? 0x1p-11
                              : tolerance::unit(operation, s.activations, s.math);
      Rng rng(3, Purpose::test);
      tolerance::Comparison worst;
      bool absent = false;
      for (const catalog::Case& drawn : operation.cases(rng)) {
        const auto values = tolerance::rounded(operation, drawn, s.activations);
        const auto expected = tolerance::run(operation, values, *reference, DType::f64);
        const auto bounds =
            tolerance::bounds(operation, values, *reference, expected, s.activations, unit);
        try {
          const auto got = tolerance::run(operation, values, *backend, s.activations);
          const auto used = tolerance::compare(expected, got, bounds);
          if (used.used >= worst.used) worst = used;
        } catch (const Error& error) {
          if (!std::string_view(error.what()).ends_with("is absent")) throw;
          absent = true;
          break;
        }
      }
      if (std::getenv("LONGHAND_PARITY_TABLE")) {
        std::printf("%-25s %-5s %-6s %s %.3f\n", operation.name.c_str(),
                    std::string(name_of(s.activations)).c_str(),
                    std::string(name_of(s.math)).c_str(), absent ? "absent" : "", worst.used);
      }
      if (absent) break;
      BOOST_TEST_CONTEXT(operation.name << ", " << s.activations << ", " << name_of(s.math) << ": "
                                        << worst.where) {
        BOOST_TEST(worst.used <= 1.0);
      }
    }
  }
}

// A missing barrier, or two threads that write one place, would show as other bits in another
// order.
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
        try {
          const auto forward = in_order(emulator::Order::forward);
          BOOST_TEST_CONTEXT(operation.name << ", " << activations) {
            BOOST_TEST((same_bits(in_order(emulator::Order::backward), forward)));
            BOOST_TEST((same_bits(in_order(emulator::Order::shuffled), forward)));
          }
        } catch (const Error& error) {
          if (!std::string_view(error.what()).ends_with("is absent")) throw;
          break;
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
