#include <algorithm>
#include <chrono>

#include "apps/bench/bench.h"
#include "apps/compute.h"
#include "apps/run/batches.h"
#include "apps/run/config.h"
#include "nn/models/work.h"
#include "nn/training/trainer.h"

namespace longhand::app::training_benchmark {
namespace {

using Clock = std::chrono::steady_clock;

/// A model to train: its task, its heads and the settings that differ from the defaults.
struct Subject {
  std::string name, task, heads;
  std::map<std::string, std::string> settings;
};

/// All models that can be timed, by the paper that they are from.
/// The First-After-Last paper: the models for Flip-Flop and Cycle Tracing (with other batch sizes
/// than in the paper), and the model for the recipe fal/table1 at the scale `smoke`.
/// The ChaCAL paper: its toy models for the task chains, and its models with two layers for the
/// task boxes (with batch size 32).
/// The task-hinting paper: its model for sorting.
std::vector<Subject> all_subjects() {
  const std::map<std::string, std::string> flip_flop{{"training.batch", "8"}};
  const std::map<std::string, std::string> small{{"task.instructions", "64"},
                                                 {"model.layers", "2"}};
  const std::map<std::string, std::string> cycles{
      {"model.width", "768"}, {"model.layers", "12"}, {"training.batch", "2"}};
  const std::map<std::string, std::string> toy{
      {"model.width", "512"},         {"model.inner", "2048"},
      {"model.order", "sequential"},  {"model.activation", "gelu_tanh"},
      {"model.positions", "learned"}, {"model.tied", "1"},
      {"model.layers", "1"},          {"training.batch", "128"}};
  std::map<std::string, std::string> deep_toy = toy;
  deep_toy["model.layers"] = "5";
  std::map<std::string, std::string> boxes = toy;
  boxes["task.version"] = "advanced";
  boxes["model.layers"] = "2";
  boxes["training.batch"] = "32";
  const std::map<std::string, std::string> sorting{
      {"model.width", "1024"},     {"model.inner", "2048"},       {"model.layers", "2"},
      {"model.positions", "none"}, {"model.order", "sequential"}, {"training.batch", "1024"}};
  return {{"ffl", "flip-flop", "softmax:4", flip_flop},
          {"ffl-fal", "flip-flop", "softmax:3,fal:1", flip_flop},
          {"ct", "cycle-tracing", "softmax:1", cycles},
          {"ct-fal", "cycle-tracing", "softmax:1x704,fal:1x64", cycles},
          {"boxes", "boxes", "softmax:8", boxes},
          {"boxes-chacal", "boxes", "softmax:8;chacal:8", boxes},
          {"sorting", "sorting", "softmax:16", sorting},
          {"smoke", "flip-flop", "softmax:4", small},
          {"smoke-fal", "flip-flop", "softmax:3,fal:1", small},
          {"toy", "chains", "softmax:8", toy},
          {"toy-5", "chains", "softmax:8", deep_toy},
          {"toy-chacal", "chains", "chacal:8", toy}};
}

std::vector<Subject> wanted_subjects(const Arguments& arguments) {
  const std::vector<Subject> all = all_subjects();
  if (!arguments.given("size")) return all;
  std::vector<Subject> wanted;
  for (const std::string& words : arguments.words("size")) {
    const std::size_t colon = std::min(words.find(':'), words.size());
    const std::string name = words.substr(0, colon);
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Subject& s) { return s.name == name; });
    if (found == all.end()) {
      std::string names;
      for (const Subject& s : all) names += (names.empty() ? "" : ", ") + s.name;
      wrong_usage("--size: expected one of ", names, ", got '", name, "'");
    }
    wanted.push_back(*found);
    if (colon == words.size()) continue;
    const std::string batch = words.substr(colon + 1);
    wanted.back().settings["training.batch"] =
        std::to_string(parse_integer("--size", batch, 1, std::int64_t{1} << 20));
    wanted.back().name = words;
  }
  return wanted;
}

/// Measures the time of each operation as the time from its start to the start of the next
/// operation.
class Stopwatch {
 public:
  void start(std::string_view name) {
    const auto now = Clock::now();
    if (!running_.empty()) {
      seconds_[running_] += std::chrono::duration<double>(now - since_).count();
    }
    running_ = name;
    since_ = now;
  }
  void clear() { seconds_.clear(); }
  Json milliseconds(int rounds) const {
    std::vector<std::pair<std::string, double>> all(seconds_.begin(), seconds_.end());
    std::ranges::sort(all, [](const auto& a, const auto& b) { return a.second > b.second; });
    Json object = Json::object();
    for (const auto& [name, seconds] : all) object[name] = 1e3 * seconds / rounds;
    return object;
  }

 private:
  std::map<std::string, double> seconds_;
  std::string running_;
  Clock::time_point since_;
};

/// Times of a model's training steps, and the reports of the first and the last step.
struct TimedSteps {
  // Seconds and tokens per second of each step. Steps differ in their numbers of tokens.
  std::vector<double> seconds, rates;
  nn::StepReport first, last;
};

/// Trains for `budget` seconds, but at least three steps. The first step also allocates memory from
/// the system, so its time is reported separately.
TimedSteps time_steps(nn::Decoder& model, const nn::BatchSource& batches,
                      const nn::TrainerOptions& options, double budget, Stopwatch& watch) {
  TimedSteps steps;
  Clock::time_point end;
  nn::TrainerHooks hooks;
  hooks.report = [&](const nn::StepReport& r) {
    if (r.step == 1) {
      watch.clear();
      steps.first = r;
      end = Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(budget));
    } else {
      steps.seconds.push_back(r.seconds);
      steps.rates.push_back(static_cast<double>(r.tokens) / r.seconds);
    }
    steps.last = r;
  };
  hooks.stop = [&] {
    return steps.seconds.size() >= 1000 || (steps.seconds.size() >= 3 && Clock::now() >= end);
  };
  nn::Trainer trainer(model, batches, options, hooks);
  trainer.run();
  std::ranges::sort(steps.seconds);
  std::ranges::sort(steps.rates);
  return steps;
}

void time_subject(const Subject& subject, Backend& backend, double budget, std::uint64_t seed,
                  Report& report) {
  Config config(subject.task);
  config.set("model.heads", subject.heads);
  for (const auto& [key, value] : subject.settings) config.set(key, value);
  const std::shared_ptr<const tasks::Task> task = config.task();
  const nn::BatchSource batches = training_batches(task, seed, config.training().batch_plan());

  const auto start = Clock::now();
  nn::Decoder model(backend, config.model(*task), seed);
  const double making = std::chrono::duration<double>(Clock::now() - start).count();

  Stopwatch watch;
  // Operations on a GPU run asynchronously, so the time between the calls of two operations is not
  // the time of the first operation.
  if (backend.devices().empty()) {
    backend.observer = [&](std::string_view name) { watch.start(name); };
  }
  const TimedSteps steps = time_steps(
      model, batches, {.steps = 1002, .schedule = config.training().schedule}, budget, watch);
  backend.observer = {};

  const std::vector<double>& seconds = steps.seconds;
  const auto rounds = static_cast<int>(seconds.size());
  const double median = (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;
  const nn::StepWork work =
      nn::work_of(model, static_cast<double>(steps.last.tokens), steps.last.pairs);
  report.add({{"model", subject.name},
              {"math", name_of(backend.options().math)},
              {"parameters", model.parameters().count()},
              {"tokens", steps.last.tokens},
              {"milliseconds", 1e3 * median},
              {"best_ms", 1e3 * seconds.front()},
              {"tokens_per_second", steps.rates[steps.rates.size() / 2]},
              {"gflops", work.operations / median / 1e9},
              {"peak_mib", static_cast<double>(steps.last.memory.peak) / (1 << 20)},
              {"rounds", rounds},
              {"operations", work.operations},
              {"bytes", work.bytes},
              {"making_ms", 1e3 * making},
              {"first_step_ms", 1e3 * steps.first.seconds},
              {"loss", steps.last.loss},
              {"ms_by_operation", watch.milliseconds(rounds)}});
}

void run(const Arguments& arguments, Backend& backend, Report& report) {
  std::vector<Math> modes{Math::exact, Math::fast, Math::bf16};
  if (arguments.given("math")) modes = {backend.options().math};
  for (const Subject& subject : wanted_subjects(arguments)) {
    for (const Math math : modes) {
      BackendOptions options = backend.options();
      options.math = math;
      const auto fresh = make_backend(backend.name(), options);
      time_subject(subject, *fresh, budget_from(arguments), seed_from(arguments), report);
    }
  }
}

const RegisterBenchmark benchmark{
    {.name = "training",
     .summary = "whole training steps: data, forward, backward, optimizer",
     .sizes = "MODEL or MODEL:BATCH: ffl, ffl-fal, ct, ct-fal, boxes, boxes-chacal, sorting, "
              "smoke, smoke-fal, toy, toy-5, toy-chacal",
     .columns = {{"model", "model"},
                 {"math", "math"},
                 {"parameters", "parameters", "%.0f"},
                 {"tokens", "tokens", "%.0f"},
                 {"milliseconds", "ms/step", "%.1f"},
                 {"best_ms", "best", "%.1f"},
                 {"tokens_per_second", "tokens/s", "%.0f"},
                 {"gflops", "GFLOP/s", "%.1f"},
                 {"peak_mib", "peak MiB", "%.1f"}},
     .run = run}};

}  // namespace
}  // namespace longhand::app::training_benchmark
