#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <set>

#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"
#include "tests/tolerance.h"

using namespace longhand;

// Every op of the catalog, forward and all gradients: the CPU backend, with each instruction set of
// this machine, element type and math mode, against the reference in f64.
BOOST_AUTO_TEST_SUITE(parity_test)

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
    all.push_back({isa, DType::bf16, Math::fast});
  }
  return all;
}

struct Expected {
  const catalog::Operation* operation;
  catalog::Case values;
  tolerance::Results results;
  std::map<double, tolerance::Results> bounds;  // by rounding unit
};

/// The reference's answers for one element type, computed once for all settings.
std::vector<Expected> reference_answers(Backend& reference, DType activations) {
  std::vector<Expected> all;
  for (const catalog::Operation& operation : catalog::operations()) {
    Rng rng(3, Purpose::test);
    for (const catalog::Case& drawn : all_cases(operation, rng)) {
      Expected e{&operation, tolerance::rounded(operation, drawn, activations), {}, {}};
      e.results = tolerance::run(operation, e.values, reference, DType::f64);
      for (const Math math : {Math::exact, Math::fast, Math::bf16}) {
        const double unit = tolerance::unit(operation, activations, math);
        if (!e.bounds.contains(unit)) {
          e.bounds[unit] =
              tolerance::bounds(operation, e.values, reference, e.results, activations, unit);
        }
      }
      all.push_back(std::move(e));
    }
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_cpu_backend_agrees_with_the_reference) {
  const auto reference = make_reference_backend();
  std::map<DType, std::vector<Expected>> answers;
  for (const DType type : {DType::f32, DType::bf16}) {
    answers[type] = reference_answers(*reference, type);
  }
  const bool table = std::getenv("LONGHAND_PARITY_TABLE") != nullptr;
  if (table) std::printf("op                        isa         type  math   share of bound\n");
  for (const Setting& s : settings()) {
    const auto backend =
        std::make_shared<cpu::CpuBackend>(BackendOptions{.threads = 2, .math = s.math}, s.isa);
    std::map<std::string, tolerance::Comparison> worst;
    for (const Expected& e : answers.at(s.activations)) {
      const auto got = tolerance::run(*e.operation, e.values, *backend, s.activations);
      const auto used = tolerance::compare(
          e.results, got, e.bounds.at(tolerance::unit(*e.operation, s.activations, s.math)));
      auto& entry = worst[e.operation->name];
      if (used.used >= entry.used) entry = used;
    }
    for (const auto& [name, w] : worst) {
      BOOST_TEST_CONTEXT(name << " on " << cpu::name_of(s.isa) << ", " << s.activations << ", "
                              << name_of(s.math) << ": " << w.where) {
        BOOST_TEST(w.used <= 1.0);
      }
      if (table) {
        std::printf("%-25s %-11s %-5s %-6s %.3f\n", name.c_str(),
                    std::string(cpu::name_of(s.isa)).c_str(),
                    std::string(name_of(s.activations)).c_str(),
                    std::string(name_of(s.math)).c_str(), w.used);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit) {
  for (const cpu::Isa isa : cpu::supported_isas()) {
    std::map<int, std::shared_ptr<Backend>> backends;
    for (const int threads : {1, 2, 3, 8}) {
      backends[threads] =
          std::make_shared<cpu::CpuBackend>(BackendOptions{.threads = threads}, isa);
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
