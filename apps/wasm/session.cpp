#include "apps/wasm/session.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "apps/run/evaluation.h"
#include "apps/run/inspection.h"
#include "apps/run/learning.h"
#include "autograd/softmax.h"
#include "core/cpu/isa.h"
#include "core/quote.h"
#include "core/tensor_file.h"

namespace longhand::app {
namespace {

/// Prepares step `number`, whose results are computed later. The step has a single batch, whose
/// share of the total weight is 1.
nn::Step next_step(const nn::BatchSource& batches, const nn::Schedule& schedule,
                   std::int64_t number) {
  nn::Step step{.report = {.step = number, .rate = schedule.at(number)},
                .batches = {batches(number, 0)},
                .places = {0},
                .shares = {1},
                .start = nn::Step::Clock::now()};
  step.report.skipped = step.batches[0].total_weight() == 0;
  return step;
}

/// The configuration with other options of its task. Each line of `changes` is "option = value".
Config changed(Config config, std::string_view changes) {
  while (!changes.empty()) {
    const std::size_t end = std::min(changes.find('\n'), changes.size());
    const std::string_view line = changes.substr(0, end);
    changes.remove_prefix(std::min(end + 1, changes.size()));
    const std::size_t equals = line.find(" = ");
    LONGHAND_CHECK(equals != std::string_view::npos, "expected \"option = value\", got ",
                   quote(line));
    config.set("task." + std::string(line.substr(0, equals)), std::string(line.substr(equals + 3)));
  }
  return config;
}

/// The backend of the configuration. Math::portable needs fused multiply-adds, for which only the
/// module with relaxed SIMD has kernels.
std::shared_ptr<Backend> backend_of(const Config& config) {
  const ComputeSettings compute = config.compute();
  LONGHAND_CHECK(
      compute.options.math != Math::bf16,
      "compute.math: expected exact, fast or portable, because the module has no kernels "
      "for bf16");
  LONGHAND_CHECK(
      compute.options.math != Math::portable || cpu::choose_isa() == cpu::Isa::simd128,
      "compute.math: expected exact, because portable needs relaxed SIMD, which is missing here");
  return compute.make();
}

double rounded(double share) { return std::round(share * 1e5) / 1e5; }

/// The `most` most probable tokens, in descending order of their probabilities.
Json best(const std::vector<double>& shares, std::int64_t most,
          const tasks::Vocabulary& vocabulary) {
  std::vector<std::int32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(), [&](std::int32_t token) {
    return shares[static_cast<std::size_t>(token)];
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(most)));
  Json all = Json::array();
  for (const std::int32_t token : order) {
    all.push_back({{"token", token},
                   {"label", token_label(vocabulary, token)},
                   {"probability", rounded(shares[static_cast<std::size_t>(token)])}});
  }
  return all;
}

}  // namespace

Session::Session(std::string_view ini, std::span<const std::byte> parameters)
    : config_(Config::parse(ini, "configuration")),
      settings_(config_.training()),
      backend_(backend_of(config_)),
      task_(config_.task()),
      model_(*backend_, config_.model(*task_), settings_.seed, config_.storage()),
      batches_(config_.batches(config_.learned())) {
  LONGHAND_CHECK(settings_.batches() == 1,
                 "training.parts and training.accumulation: expected 1 for both, because the "
                 "WebAssembly build supports no other value");
  if (!parameters.empty()) load(parameters);
  set_up_training(config_, model_);
  const ChosenOptimizer chosen = optimizer_of(settings_, model_);
  optimizer_ = nn::make_optimizer(model_.parameters(), chosen.options, chosen.groups);
}

void Session::load(std::span<const std::byte> parameters) {
  const SafetensorsFile file = SafetensorsFile::parse(parameters, "parameters");
  file.check_sums();
  for (const nn::Parameter& parameter : model_.parameters().all()) {
    load_into(parameter.value(), file, parameter.name());
  }
}

Json Session::about() const {
  return {{"parameters", model_.parameters().count()},
          {"kernels", std::string(cpu::name_of(cpu::choose_isa()))},
          {"steps", settings_.schedule.steps},
          {"seed", settings_.seed}};
}

Json Session::train(std::int64_t last) {
  Json reports = Json::array();
  for (last = std::min(last, settings_.schedule.steps); step_ < last; ++step_) {
    nn::Step step = next_step(batches_, settings_.schedule, step_ + 1);
    if (step.report.skipped) continue;
    optimizer_->prepare(step.report.rate, step.report.step);
    nn::PlacedStep placed(model_, step);
    placed.add_gradients(model_);
    optimizer_->step(placed.losses());
    const std::vector<double> numbers = placed.numbers.to_doubles();
    LONGHAND_CHECK(std::isfinite(numbers[0]), "step ", step_ + 1, ": the loss is ", numbers[0]);
    Json report{{"step", step_ + 1}, {"loss", numbers[0]}};
    if (placed.choices) report["accuracy"] = numbers[1];
    reports.push_back(std::move(report));
  }
  return reports;
}

Json Session::evaluate(std::string_view changes, std::int64_t samples) {
  const auto task = changed(config_, changes).task();
  const tasks::Tally tally =
      app::evaluate(model_, *task, {.samples = samples, .seed = settings_.seed});
  Json scores = Json::object();
  for (const tasks::Metric& metric : tally.metrics()) scores[metric.name] = metric.mean();
  return scores;
}

Json Session::look(std::string_view prompt, std::int64_t most) {
  tasks::Sample sample{.tokens = task_->vocabulary().encode(prompt), .targets = {}};
  LONGHAND_CHECK(!sample.tokens.empty(), "expected at least one token");
  const nn::Input input = beginning_for(model_, *task_, sample, sample.tokens.size());
  Json heads = Json::array();
  for (HeadView& view : look_inside(model_, input)) {
    Json head{{"layer", view.layer}, {"head", view.head}};
    for (double& weight : view.weights) weight = rounded(weight);
    if (!view.weights.empty()) head["weights"] = view.weights;
    if (!view.selected.empty()) head["selected"] = view.selected;
    heads.push_back(std::move(head));
  }
  const Tensor shares = softmax(model_.logits(model_.features(input))).value();
  Json predictions = Json::array();
  for (std::int64_t row = 0; row < shares.rows(); ++row) {
    predictions.push_back(best(shares.slice(row, 1).to_doubles(), most, task_->vocabulary()));
  }
  return {{"tokens", labels(*task_, sample.tokens)},
          {"predictions", std::move(predictions)},
          {"heads", std::move(heads)}};
}

}  // namespace longhand::app
