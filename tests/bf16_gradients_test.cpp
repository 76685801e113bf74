#include <cmath>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"

BOOST_AUTO_TEST_SUITE(bf16_gradients_test)

using namespace longhand;

// Tests the gradients of fused attention with bf16 tensors on long sequences, where a systematic
// rounding error would accumulate: over the keys in stick-breaking attention, and over the tokens
// in the gradients of forget gates.

namespace {

/// Returns the relative error of every gradient in bf16: the norm of the error divided by the norm
/// of the gradient.
std::map<std::string, double> errors(const catalog::Operation& operation,
                                     const catalog::Case& drawn, Backend& backend) {
  const auto reference = make_reference_backend();
  const catalog::Case values = tolerance::rounded(operation, drawn, DType::bf16);
  return tolerance::relative_errors(tolerance::run(operation, values, *reference, DType::f64),
                                    tolerance::run(operation, values, backend, DType::bf16));
}

}  // namespace

// Rounding to bf16 has a relative error of at most 2^-9. Gradients may have an error of 2^-6,
// because dS = P (dP - dy . y) contains a difference, which increases relative errors. Threshold
// relative attention (TRA) computes its products in f32 and rounds only the stored results, so its
// bound is 2^-8. If TRA computed dy . y from the rounded y, its dq would be off by 1% to 2%: one
// key often has nearly all of a row's weight, and dP of this key is close to dy . y.
BOOST_AUTO_TEST_CASE(no_gradient_is_off_by_more_than_rounding_explains) {
  for (const cpu::Isa isa : cpu::supported_isas()) {
    for (const Math math : {Math::fast, Math::bf16}) {
      const auto backend = make_cpu_backend({.threads = 2, .math = math}, isa);
      for (const char* name : {"attention", "stick_attention", "entmax_attention", "tra_attention",
                               "sigmoid_attention"}) {
        const catalog::Operation& operation = catalog::find(name);
        for (const double gate : {0.0, 0.5, 0.97}) {
          if (gate > 0 && operation.name == "tra_attention")
            // TRA is tested without gates: gates add shifts to the scores, and these shifts alone
            // would determine the signs of the scores, on which TRA depends.
            continue;
          Rng rng(3, Purpose::test);
          for (const auto& [result, error] :
               errors(operation, operation.of_length(rng, 300, gate), *backend)) {
            const double bound = operation.name == "tra_attention" ? 0x1p-8 : 0x1p-6;
            BOOST_TEST(error < bound, name << ", gates of " << gate << ", " << cpu::name_of(isa)
                                           << ", " << name_of(math) << ": " << result
                                           << " is off by " << error);
          }
        }
      }
    }
  }
}

// y depends only on the differences between the shifts of the keys, so the gradients of the shifts
// add up to 0. This also holds in bf16, because the sums of dS over rows and over columns are
// computed from the same numbers.
BOOST_AUTO_TEST_CASE(the_gradients_of_a_shift_sum_to_zero) {
  const auto backend = make_cpu_backend({.threads = 2, .math = Math::bf16});
  for (const char* name :
       {"attention", "stick_attention", "entmax_attention", "sigmoid_attention", "chacal"}) {
    const catalog::Operation& operation = catalog::find(name);
    Rng rng(3, Purpose::test);
    int shifted = 0;
    for (const catalog::Case& values : operation.large(rng)) {
      if (!values.inputs.contains("shift")) continue;
      ++shifted;
      double sum = 0, size = 0;
      const auto results = tolerance::run(operation, values, *backend, DType::bf16);
      for (const double x : results.at("dshift").values) {
        sum += x;
        size += std::abs(x);
      }
      BOOST_TEST(std::abs(sum) < 1e-5 * size, name << ": " << sum << " of " << size);
    }
    BOOST_TEST(shifted > 0, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
