#include <array>
#include <set>
#include "tests/check.h"

#include "autograd/matmul.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"
#include "core/error.h"
#include "tests/random_tensor.h"
#include "tests/same_bits.h"

BOOST_AUTO_TEST_SUITE(portable_test)

using namespace longhand;

// With Math::portable, the CPU backend computes the same bits on every processor. This test
// compares all instruction sets of this machine. portable_training_test.sh compares with
// other machines.

namespace {

struct Kernels {
  cpu::Isa isa;
  std::shared_ptr<Backend> backend;
};
std::vector<Kernels> all_kernels() {
  std::vector<Kernels> all;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    all.push_back({isa, make_cpu_backend({.threads = 2, .math = Math::portable}, isa)});
  }
  // With fused multiply-add, Math::exact computes the same bits as Math::portable. parity_test
  // checks the errors of Math::exact, so it need not check those of Math::portable.
  if (const cpu::Isa isa = all.back().isa; isa != cpu::Isa::portable) {
    all.push_back({isa, make_cpu_backend({.threads = 2, .math = Math::exact}, isa)});
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_operation_has_the_same_bits_on_every_instruction_set) {
  const auto all = all_kernels();
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(5, Purpose::test);
    std::set<std::string> different;
    for (const catalog::Case& values : all_cases(operation, rng)) {
      for (const DType type : {DType::f32, DType::bf16}) {
        const auto expected = tolerance::run(operation, values, *all.front().backend, type);
        for (const auto& [isa, backend] : all) {
          if (same_bits(expected, tolerance::run(operation, values, *backend, type))) continue;
          different.insert(text(cpu::name_of(isa), " in ", type));
        }
      }
    }
    for (const std::string& what : different) {
      BOOST_TEST(false, operation.name << " has other bits on " << what);
    }
  }
}

BOOST_AUTO_TEST_CASE(long_sums_of_products_have_the_same_bits_on_every_instruction_set) {
  // The products are divided into blocks and tasks in different ways: along k, rows or columns.
  const auto all = all_kernels();
  for (const auto& [m, k, n] : {std::array{30, 6000, 40},
                                {700, 4100, 300},
                                {5, 2100, 900},
                                {1500, 70, 700},
                                {3, 9000, 1},
                                {130, 2600, 1030}}) {
    std::vector<double> expected;
    for (const auto& [isa, backend] : all) {
      const Var a(random_tensor(*backend, {m, k}, DType::f32, 1));
      const Var b(random_tensor(*backend, {k, n}, DType::f32, 2));
      const auto got = matmul(a, b).value().to_doubles();
      if (expected.empty()) expected = got;
      BOOST_TEST((got == expected), cpu::name_of(isa) << ": " << m << " x " << k << " x " << n);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
