#include "apps/wasm/chains.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "apps/run/inspection.h"
#include "autograd/chacal.h"
#include "autograd/matmul.h"
#include "autograd/triangle.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/rng.h"
#include "tasks/task.h"

namespace longhand::app {
namespace {

constexpr std::int64_t most_tokens = 64;

tasks::OptionValues chain_options(const Json& request) {
  const tasks::TaskKind& kind = tasks::task_kind("chains");
  tasks::OptionValues options(kind.name, kind.options);
  for (const char* name : {"blocks", "size"}) {
    options.set(name, std::to_string(request[name].integer()));
  }
  return options;
}

/// The token to which each token refers. A token without a reference refers to itself.
std::vector<std::int64_t> references(const tasks::Task& task, const tasks::Sample& sample) {
  std::vector<std::int64_t> refers(sample.tokens.size());
  std::iota(refers.begin(), refers.end(), 0);
  for (const tasks::ReferenceRow& row : task.reference(sample)) {
    refers[static_cast<std::size_t>(row.row)] = row.columns.front();
  }
  return refers;
}

/// The matrix with `value` at entry (i, columns[i]) of each row i, and 0 elsewhere.
Var selection(Backend& backend, const std::vector<std::int64_t>& columns, double value) {
  const std::int64_t n = std::ssize(columns);
  std::vector<double> entries(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) {
    entries[static_cast<std::size_t>(i * n + columns[static_cast<std::size_t>(i)])] = value;
  }
  return Tensor::from(backend, {n, n}, DType::f64, entries);
}

}  // namespace

Json follow_chains(const Json& request) {
  const auto task = tasks::task_kind("chains").make_with(chain_options(request));
  const std::int64_t n = task->longest(), blocks = request["blocks"].integer();
  LONGHAND_CHECK(n <= most_tokens, "blocks times size: expected at most ", most_tokens, ", got ",
                 n);
  const double gamma = request["gamma"].number();
  LONGHAND_CHECK(gamma >= 0 && gamma <= 1, "gamma: expected a number from 0 to 1, got ", gamma);
  Rng rng(static_cast<std::uint64_t>(request["seed"].integer()));
  const tasks::Sample sample = task->sample(rng, 0);
  const std::vector<std::int64_t> refers = references(*task, sample);
  std::vector<std::int64_t> own(refers.size());
  std::iota(own.begin(), own.end(), 0);

  const auto backend = make_reference_backend();
  const Var identity = selection(*backend, own, 1);
  const ScoreVars scores{
      .q = all_columns(selection(*backend, refers, request["score"].number()), 1),
      .k = all_columns(identity, 1),
      .queries = Segments(*backend, std::array{static_cast<std::int32_t>(n)}),
      .scale = 1};
  const auto read = [&](double g) {
    return chacal(scores, all_columns(identity, 1),
                  Var(Tensor::from(*backend, {1}, DType::f64, std::array{g})));
  };
  const Var weights = read(0);  // P: with gamma 0, ChaCAL is softmax attention
  const Var earlier = triangle(weights, false, -1);
  const std::vector<double> output = read(gamma).value().to_doubles();
  std::vector<double> sum(output.size());
  Json steps = Json::array();
  Var power = weights;
  for (std::int64_t c = 0; c < n; ++c, power = matmul(earlier, power)) {
    const std::vector<double> entries = power.value().to_doubles();
    const double factor = (1 - gamma) * std::pow(gamma, static_cast<double>(c));
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += factor * entries[i];
    if (c < blocks) steps.push_back(entries);
  }
  double difference = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    difference = std::max(difference, std::abs(sum[i] - output[i]));
  }
  return {{"tokens", labels(*task, sample.tokens)},
          {"refers", refers},
          {"steps", std::move(steps)},
          {"output", output},
          {"difference", difference}};
}

}  // namespace longhand::app
