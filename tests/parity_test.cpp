#include <cstdlib>
#include <set>
#include "tests/check.h"

#include "autograd/tolerance.h"
#include "core/contract/all.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"
#include "tests/mutant_trials.h"

BOOST_AUTO_TEST_SUITE(parity_test)

using namespace longhand;

// Compares the CPU backend with the reference backend in f64. Every op of the catalog is computed,
// with all gradients, for each instruction set of this machine, element type and math mode.

namespace {

struct Setting {
  cpu::Isa isa;
  DType activations;
  Math math;
};

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
      all.push_back({isa, DType::f32, math});
    }
    for (const Math math : {Math::fast, Math::bf16}) all.push_back({isa, DType::bf16, math});
  }
  // Math::portable is not listed: portable_test shows that it has the bits of Math::exact.
  return all;
}

}  // namespace

// Computing the results of the reference takes most of the time. They are therefore used twice: to
// check the CPU backend, and to check that the comparison detects deliberate bugs (mutants).
BOOST_AUTO_TEST_CASE(the_cpu_backend_agrees_with_the_reference_and_no_mutant_does) {
  const auto reference = make_reference_backend();
  std::vector<std::pair<Setting, std::shared_ptr<Backend>>> backends;
  for (const Setting& s : settings()) {
    backends.emplace_back(s, make_cpu_backend({.threads = 2, .math = s.math}, s.isa));
  }
  mutants::Trials mutants;
  const bool table = std::getenv("LONGHAND_PARITY_TABLE") != nullptr;
  if (table) {
    std::printf("find_bad_score runs the reference's own code on the CPU.\n");
    std::printf("op                        isa         type  math   share of bound\n");
  }
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(3, Purpose::test);
    tolerance::Standard standard(operation, all_cases(operation, rng), *reference);
    for (const auto& [s, backend] : backends) {
      const tolerance::Worst worst = standard.compare(
          *backend, s.activations, tolerance::unit(operation, s.activations, s.math));
      BOOST_TEST_CONTEXT(operation.name << " on " << cpu::name_of(s.isa) << ", " << s.activations
                                        << ", " << name_of(s.math) << ": " << worst.where) {
        BOOST_TEST(worst.used <= 1.0);
      }
      if (table) {
        std::printf("%-25s %-11s %-5s %-6s %.3f  %s\n", operation.name.c_str(),
                    std::string(cpu::name_of(s.isa)).c_str(),
                    std::string(name_of(s.activations)).c_str(),
                    std::string(name_of(s.math)).c_str(), worst.used, worst.where.c_str());
      }
    }
    mutants.check(operation, standard);
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit) {
  for (const cpu::Isa isa : cpu::supported_isas()) {
    std::map<int, std::shared_ptr<Backend>> backends;
    for (const int threads : {1, 2, 3, 8}) {
      backends[threads] = make_cpu_backend({.threads = threads}, isa);
    }
    for (const catalog::Operation& operation : catalog::operations()) {
      Rng rng(5, Purpose::test);
      for (const catalog::Case& values : all_cases(operation, rng)) {
        const auto one = tolerance::run(operation, values, *backends[1], DType::f32);
        for (const int threads : {2, 3, 8}) {
          const auto many = tolerance::run(operation, values, *backends[threads], DType::f32);
          BOOST_TEST_CONTEXT(operation.name << " with " << threads << " threads on "
                                            << cpu::name_of(isa)) {
            BOOST_REQUIRE(one == many);
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_catalog_reaches_every_operation_of_the_contract) {
  const auto reference = make_reference_backend();
  std::set<std::string_view> reached;
  reference->observer = [&](std::string_view name) { reached.insert(name); };
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(3, Purpose::test);
    for (const catalog::Case& values : operation.cases(rng)) {
      tolerance::run(operation, values, *reference, DType::f64);
    }
  }
  const auto expect = [&](std::string_view name) {
    BOOST_TEST(reached.contains(name), name << " is reached by no op of the catalog");
  };
  std::apply([&](const auto&... ops) { (expect(std::decay_t<decltype(ops)>::name), ...); },
             Contract{});
}

BOOST_AUTO_TEST_SUITE_END()
