#include "tests/mutant_trials.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <set>
#include "tests/check.h"

#include "core/cpu/cpu_backend.h"
#include "core/cpu/isa.h"
#include "tests/mutants.h"

namespace longhand::mutants {
namespace {

using tolerance::Results;

struct Setting {
  const char* name;
  DType activations;
  Math math;
  bool tf32;
  std::shared_ptr<Backend> backend;  // the correct backend, whose results the mutants change
};

std::vector<Setting> settings() {
  const auto cpu = [](Math math) {
    return make_cpu_backend({.threads = 1, .math = math}, cpu::supported_isas().back());
  };
  return {{"f32 exact", DType::f32, Math::exact, false, cpu(Math::exact)},
          {"f32 fast", DType::f32, Math::fast, false, cpu(Math::fast)},
          {"f32 bf16", DType::f32, Math::bf16, false, cpu(Math::bf16)},
          {"bf16", DType::bf16, Math::fast, false, cpu(Math::fast)},
          {"bf16 bf16", DType::bf16, Math::bf16, false, cpu(Math::bf16)},
          // No CPU backend computes in TF32, so this setting has the results of Math::exact and the
          // bounds of TF32.
          {"f32 TF32", DType::f32, Math::fast, true, cpu(Math::exact)}};
}

/// A mutant that cannot be detected, and the reason.
struct Excuse {
  // `mutant` is the beginning of a mutant's name. An empty string matches every name.
  std::string mutant, operation, setting, reason;
};
const std::vector<Excuse>& excuses() {
  static const std::vector<Excuse> all{};
  return all;
}

struct Count {
  int made = 0, caught = 0, excused = 0;
};

/// Tests whether the mutants of one op are detected in one setting (type and math mode).
class Trial {
 public:
  Trial(const catalog::Operation& operation, const Setting& setting, tolerance::Standard& standard)
      : operation_(operation),
        setting_(setting),
        standard_(standard),
        unit_(tolerance::unit(operation, setting.activations, setting.math, setting.tf32)) {
    setting.backend->observer = [this](std::string_view name) { runs_.insert(name); };
    for (const auto& [values, expected] : standard.answers(setting.activations)) {
      right_.push_back(tolerance::run(operation, values, *setting.backend, setting.activations));
    }
    setting.backend->observer = {};
  }

  Count run() {
    for (const ResultMutant& mutant : of_results()) {
      for (const auto& [name, result] : right_.front()) {
        if (is_float(result.dtype)) alter_results(mutant, name);
      }
    }
    for (const BackendMutant& mutant : of_backends()) {
      const auto backend = make_altered_backend(setting_.backend);
      mutant.install(*backend);
      if (!backend->alters_any_of(runs_)) continue;
      judge(mutant.name,
            [&](std::size_t number) { return computed(operation_, number, *backend); });
    }
    for (const OperationMutant& mutant : of_operations()) {
      if (mutant.operation != operation_.name) continue;
      catalog::Operation wrong = operation_;
      wrong.run = mutant.run;
      judge(mutant.name,
            [&](std::size_t number) { return computed(wrong, number, *setting_.backend); });
    }
    return count_;
  }

 private:
  /// Returns the results of a mutant for the op's test case with index `number`.
  using Compute = std::function<Results(std::size_t number)>;

  Results computed(const catalog::Operation& wrong, std::size_t number, Backend& backend) const {
    return tolerance::run(wrong, answers()[number].values, backend, setting_.activations);
  }

  const std::vector<tolerance::Standard::Answer>& answers() const {
    return standard_.answers(setting_.activations);
  }

  void alter_results(const ResultMutant& mutant, const std::string& name) {
    judge(mutant.name + " in " + name, [&](std::size_t number) {
      Results got;
      const auto found = right_[number].find(name);
      if (found == right_[number].end()) return got;
      tolerance::Result result = found->second;
      mutant.apply(result,
                   tolerance::blocks(operation_, answers()[number].values, name, result.shape));
      got[name] = std::move(result);
      return got;
    });
  }

  /// Compares a mutant's results with the reference, but only if they differ from the results of
  /// the correct backend. Stops at the first case that exceeds its bound, because further cases
  /// cannot change the verdict.
  void judge(const std::string& mutant, const Compute& compute) {
    tolerance::Comparison comparison(operation_, setting_.activations, unit_);
    bool differs = false;
    for (std::size_t i = 0; i < right_.size(); ++i) {
      Results got = compute(i);
      std::erase_if(got, [](const auto& result) { return !is_float(result.second.dtype); });
      Results expected;
      for (const auto& [name, result] : got) {
        expected[name] = answers()[i].expected.at(name);
        differs = differs || !(right_[i].at(name) == result);
      }
      comparison.add(answers()[i].values, expected, standard_.noise(i), got);
      if (differs && comparison.worst_of_cases().used > 1) break;
    }
    if (!differs) return;  // the mutant changes no result of this op
    ++count_.made;
    const tolerance::Worst worst = comparison.worst();
    if (worst.used > 1) {
      ++count_.caught;
      return;
    }
    for (const Excuse& e : excuses()) {
      if (mutant.starts_with(e.mutant) && (e.operation.empty() || e.operation == operation_.name) &&
          (e.setting.empty() || e.setting == setting_.name)) {
        ++count_.excused;
        return;
      }
    }
    BOOST_ERROR(operation_.name << ", " << setting_.name << ": " << mutant << " is not noticed: "
                                << worst.used << " of a bound, " << worst.where);
  }

  const catalog::Operation& operation_;
  const Setting& setting_;
  tolerance::Standard& standard_;
  double unit_;
  std::vector<Results> right_;
  // Names of the backend operations (core/contract) that the tested op executes.
  std::set<std::string_view> runs_;
  Count count_;
};

}  // namespace

struct Trials::State {
  std::vector<Setting> settings = mutants::settings();
  std::map<std::string, Count> sums;  // key: name of the setting
  bool table = std::getenv("LONGHAND_MUTANTS_TABLE") != nullptr;

  void print(const std::string& operation, const std::string& setting, const Count& count) const {
    if (!table) return;
    std::printf("%-25s %-10s %7d  %7d  %7d\n", operation.c_str(), setting.c_str(), count.made,
                count.caught, count.excused);
  }
};

Trials::Trials() : state_(std::make_unique<State>()) {
  if (state_->table) {
    std::printf("op                        setting    mutants  noticed  excused\n");
  }
}

Trials::~Trials() {
  for (const auto& [name, sum] : state_->sums) state_->print("all", name, sum);
}

void Trials::check(const catalog::Operation& operation, tolerance::Standard& standard) {
  for (const Setting& setting : state_->settings) {
    const Count count = Trial(operation, setting, standard).run();
    Count& sum = state_->sums[setting.name];
    sum.made += count.made;
    sum.caught += count.caught;
    sum.excused += count.excused;
    state_->print(operation.name, setting.name, count);
  }
}

}  // namespace longhand::mutants
