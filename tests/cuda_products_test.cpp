#include "tests/check.h"

#include <cmath>
#include <set>

#include "core/contract/elementwise.h"
#include "core/contract/matmul.h"
#include "core/rng.h"
#include "cuda/emulator/backend.h"

BOOST_AUTO_TEST_SUITE(cuda_products_test)

using namespace longhand;

// Tests every epilogue of a product with all types and math modes on the emulated device. Each
// product is run twice. In the first run, the emulated cuBLASLt fuses the epilogues that it
// supports. In the second run, it refuses every fused product, and the backend uses a plain product
// and an epilogue kernel.

namespace {

constexpr std::int64_t m = 6, k = 8;

/// Random multiples of 1/4 between -1 and 1. bf16 can represent them, and their products and sums
/// are exact.
std::vector<double> quarters(std::int64_t count, std::uint64_t seed) {
  Rng rng(seed, Purpose::test);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = (static_cast<double>(rng.below(9)) - 4) / 4;
  return values;
}

struct Form {
  DType operands, result;
  std::optional<Activation> f;
  bool bias, residual, pre, at, beta;
  std::int64_t n;
};

std::vector<Form> forms() {
  std::vector<Form> all;
  const std::pair<DType, DType> types[] = {{DType::f32, DType::f32},
                                           {DType::f32, DType::bf16},
                                           {DType::bf16, DType::f32},
                                           {DType::bf16, DType::bf16}};
  std::vector<std::optional<Activation>> functions{std::nullopt};
  for (int f = 0; f <= static_cast<int>(Activation::square); ++f) {
    functions.emplace_back(static_cast<Activation>(f));
  }
  for (const auto& [operands, result] : types) {
    for (const auto& f : functions) {
      for (int bits = 0; bits < 32; ++bits) {
        const bool bias = bits & 1, residual = bits & 2, pre = bits & 4, at = bits & 8;
        if (at && (!f || bias || residual || pre)) continue;
        if (pre && !f) continue;
        // cuBLASLt fuses only some activation functions. Each other function is applied by a single
        // epilogue kernel, which is tested with fewer combinations of options.
        const bool fused = !f || *f == Activation::relu || *f == Activation::gelu_tanh;
        if (!fused && (operands != result || residual || (bits & 16) != 0)) continue;
        for (const std::int64_t n : {16, 10}) {
          all.push_back({operands, result, f, bias, residual, pre, at, (bits & 16) != 0, n});
        }
      }
    }
  }
  return all;
}

/// Runs the product that `form` describes. Returns its result `c`, followed by the argument of the
/// activation function if the product stores it.
std::vector<double> results(Backend& on, const Form& form, bool f64) {
  const auto type = [&](DType t) { return f64 ? DType::f64 : t; };
  const auto tensor = [&](Shape shape, DType t, std::uint64_t seed) {
    return Tensor::from(on, shape, type(t), quarters(shape.size(), seed));
  };
  const Shape shape{m, form.n};
  Matmul op{.a = tensor({m, k}, form.operands, 1),
            .b = tensor({k, form.n}, form.operands, 2),
            .alpha = 0.5,
            .f = form.f,
            .c = tensor(shape, form.result, 3)};
  if (form.bias) op.bias = tensor({form.n}, DType::f32, 4);
  if (form.residual) op.residual = tensor(shape, form.result, 5);
  if (form.pre) op.pre = Tensor(on, shape, type(form.result));
  if (form.at) op.at = tensor(shape, form.result, 6);
  if (form.beta) op.beta = 1;
  on(op);
  std::vector<double> all = op.c.to_doubles();
  if (form.pre) {
    const std::vector<double> z = op.pre.to_doubles();
    all.insert(all.end(), z.begin(), z.end());
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_epilogue_agrees_with_the_reference_fused_or_not) {
  const auto reference = make_reference_backend();
  for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
    const auto backend = make_emulated_cuda_backend({.math = math});
    for (const Form& form : forms()) {
      const std::vector<double> expected = results(*reference, form, true);
      for (const double refused : {0.0, 1.0}) {
        emulator::refuse_products(refused);
        const std::vector<double> got = results(*backend, form, false);
        emulator::refuse_products(0);
        const double close = form.result == DType::bf16 ? 0x1p-8 : 0x1p-18;
        BOOST_TEST_CONTEXT(name_of(math) << ", " << form.operands << " to " << form.result << ", f "
                                         << (form.f ? static_cast<int>(*form.f) : -1) << ", bias "
                                         << form.bias << ", residual " << form.residual << ", pre "
                                         << form.pre << ", at " << form.at << ", beta " << form.beta
                                         << ", columns " << form.n << ", refused " << refused) {
          BOOST_REQUIRE_EQUAL(expected.size(), got.size());
          for (std::size_t i = 0; i < got.size(); ++i) {
            if (expected[i] == got[i] || (std::isnan(expected[i]) && std::isnan(got[i]))) continue;
            BOOST_REQUIRE_SMALL(got[i] - expected[i], close * (1 + std::abs(expected[i])));
          }
        }
      }
    }
  }
  // The emulated cuBLASLt must have run 39 kinds of product. It must also have refused each kind at
  // least once, except the three kinds in `plain`, which it never refuses.
  const std::set<std::string>& seen = emulator::seen_products();
  const std::set<std::string> plain{"f32 to f32, epilogue none",
                                    "f32 as tf32 to f32, epilogue none",
                                    "bf16 to f32, epilogue none"};
  std::size_t run = 0;
  for (const std::string& kind : seen) {
    if (kind.starts_with("refused ")) continue;
    ++run;
    BOOST_TEST((plain.contains(kind) || seen.contains("refused " + kind)), kind);
  }
  BOOST_TEST(run == 39u);
}

// The emulator's replacement for cuBLASLt adds products in groups of consecutive products, as
// tensor cores do. Here the products with the indices 0, 1, 8 and 16 are 2^24, 1, -2^24 and 4. All
// others are 0. On sm_80, a group has eight products. The sum of the first group, 2^24 + 1, loses
// the 1, so the result is 4. On sm_90, a group has sixteen products. The sum of the first group is
// 1, so the result is 5, the exact sum.
BOOST_AUTO_TEST_CASE(products_are_added_as_by_tensor_cores) {
  std::vector<double> row(24), column(24, 1);
  row[0] = 0x1p24;
  row[1] = 1;
  row[8] = -0x1p24;
  row[16] = 4;
  const auto backend = make_emulated_cuda_backend({.math = Math::bf16});
  const auto product = [&](emulator::TensorCores arithmetic) {
    emulator::set_tensor_cores(arithmetic);
    Matmul op{.a = Tensor::from(*backend, {1, 24}, DType::f32, row),
              .b = Tensor::from(*backend, {24, 1}, DType::f32, column),
              .c = Tensor(*backend, {1, 1}, DType::f32)};
    (*backend)(op);
    emulator::set_tensor_cores(emulator::TensorCores::plain);
    return op.c.item();
  };
  BOOST_TEST(product(emulator::TensorCores::plain) == 4);
  BOOST_TEST(product(emulator::TensorCores::sm_80) == 4);
  BOOST_TEST(product(emulator::TensorCores::sm_90) == 5);
}

BOOST_AUTO_TEST_SUITE_END()
