#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "apps/recipes/matrix.h"
#include "apps/run/config_mixers.h"
#include "apps/run/data_files.h"
#include "apps/run/evaluation.h"
#include "apps/run/run_summary.h"
#include "apps/version.h"
#include "core/atomic_file.h"
#include "core/crc32c.h"
#include "core/error.h"
#include "core/safetensors_checksums.h"
#include "core/text_file.h"
#include "nn/models/work.h"
#include "nn/training/checkpoint_store.h"
#include "nn/training/not_finite.h"
#include "nn/training/stop_signals.h"

/// Computes one cell of the matrix, a mechanism on a task: it selects the learning rate, trains the
/// runs and scores them.
namespace longhand::app::matrix {
namespace fs = std::filesystem;

namespace {

/// Settings of the decoder, its training and its tests, equal for all cells.
constexpr ScaledSetting decoder[] = {{"model.width", "64", "64", "256"},
                                     {"model.layers", "2", "2", "4"},
                                     {"model.norm", "rms", "rms", "rms"},
                                     {"model.order", "sequential", "sequential", "sequential"},
                                     {"model.activation", "silu", "silu", "silu"},
                                     {"model.gated", "1", "1", "1"},
                                     {"model.feed_forward_bias", "0", "0", "0"},
                                     {"model.attention_bias", "0", "0", "0"},
                                     {"training.steps", "300", "1200", "25000"},
                                     {"training.batch_tokens", "1024", "2048", "16384"},
                                     {"training.schedule", "cosine", "cosine", "cosine"},
                                     {"training.clip", "1", "1", "1"},
                                     {"training.decay", "0.01", "0.01", "0.01"},
                                     {"training.keep", "1", "1", "1"},
                                     {"training.checkpoint_every", "", "400", "1000"},
                                     // No evaluation during training is needed, because the last
                                     // checkpoint is tested.
                                     {"training.evaluate_samples", "0", "0", "0"}};
constexpr std::string_view rates_of_small[] = {"1e-3", "3e-3", "1e-2"};
constexpr std::string_view rates_of_large[] = {"1e-4", "3e-4", "1e-3"};

constexpr std::int64_t samples_of_guess = 500;
constexpr double hopeless_share = 0.95;  // minimum loss of a hopeless run, relative to guessing
constexpr std::string_view whole = "whole", given_up = "hopeless", diverged = "diverged";

std::int64_t samples_of(Scale scale) { return scale == Scale::smoke ? 200 : 500; }

/// Samples that no training uses. The learning rate is selected on these samples, which differ from
/// the test samples.
EvaluationOptions validation(const RecipeOptions& options) {
  return {.samples = samples_of(options.scale), .seed = options.seed + 1000};
}
EvaluationOptions testing(const RecipeOptions& options) {
  return {.samples = samples_of(options.scale), .seed = options.seed + 2000};
}

fs::path file_of(const Cell& cell, const RecipeOptions& options) {
  return options.out / (cell.name() + ".json");
}

/// Checksum of everything on which a cell's results depend, except the program itself. The number
/// of threads is excluded, because it does not change the results.
std::string sum_of(const Cell& cell, const RecipeOptions& options) {
  std::uint32_t sum = 0;
  const auto add = [&](GridRun run) {
    run.config.set("compute.threads", "0");
    // For most kinds of heads, the default of model.head_norm is `none`. For these kinds, the value
    // is always written as `none`, so that the values `default` and `none` have the same checksum.
    Config plain = run.config;
    plain.set("model.head_norm", "none");
    if (same_mixers(run.config, plain)) run.config = plain;
    sum = crc32c(run.config.ini(), sum);
  };
  for (const std::string_view rate : rates(options.scale)) {
    for (std::int64_t i = 0; i < seeds(options); ++i) add(cell_run(cell, rate, i, options));
  }
  for (const RunData& data : data_of(cell_run(cell, rates(options.scale)[0], 0, options).config)) {
    sum = crc32c(data.content(), sum);
  }
  return checksums::hexadecimal(crc32c(text(samples_of(options.scale)), sum));
}

/// For each step of a run up to the step `last`, in order: the loss, and the seconds per token.
struct Steps {
  std::vector<double> losses, seconds;

  Steps(const RunFolder& folder, std::int64_t last) {
    for (const Json& line : folder.metrics()) {
      const bool of_step = line.contains("loss") && line["loss"].is_number();
      if (!of_step || line["step"].integer() > last) continue;
      losses.push_back(line["loss"].number());
      seconds.push_back(line["seconds"].number() / line["tokens"].number());
    }
  }
};

/// The 10% quantile of the times of steps. Other load on the machine hardly affects it.
double tenth(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[values.size() / 10];
}

/// Trains a run to its end, or only to half of its steps if is_hopeless() is true there. Returns no
/// value if the training was stopped.
std::optional<CellRun> train_run(const GridRun& run, const Guess& guess,
                                 const RecipeOptions& options) {
  const fs::path path = options.out / run.name;
  const auto latest = [&] {
    return nn::CheckpointStore(path / "checkpoints", 1).latest().value_or(0);
  };
  CellRun result{.run = run.name,
                 .rate = run.config.text("training.rate"),
                 .seed = run.config.training().seed,
                 .end = std::string(whole)};
  const std::int64_t half = run.last_step() / 2;
  const auto train_to = [&](std::int64_t step) {
    const bool is_done = step < run.last_step() ? latest() >= step : is_finished(path, run.config);
    if (fs::exists(path / "config.ini") && is_done) {
      // Throws an Error if the folder's run has another configuration.
      open_or_create(path, run.config);
      return true;
    }
    if (options.control.is_over()) return false;
    RunFolder folder = open_or_create(path, run.config);
    RunControl control = options.control;
    control.quiet = true;
    if (step < run.last_step()) control.to_step = step;
    return train(folder, control).step >= step && nn::StopSignals::raised() == 0;
  };
  try {
    if (half > 0) {
      if (!train_to(half)) return std::nullopt;
      if (latest() == half && is_hopeless(Steps(RunFolder(path), half).losses, guess.loss)) {
        result.end = given_up;
      }
    }
    if (result.end == whole && !train_to(run.last_step())) return std::nullopt;
    result.step = latest();
  } catch (const nn::NotFinite&) {
    result.end = diverged;
    result.step = static_cast<std::int64_t>(Steps(RunFolder(path), run.last_step()).losses.size());
  }
  result.seconds = tenth(Steps(RunFolder(path), run.last_step()).seconds);
  return result;
}

LoadedRun load(const CellRun& run, const RecipeOptions& options) {
  LoadOptions how{.step = run.step};
  const auto threads = options.settings.find("compute.threads");
  if (threads != options.settings.end()) how.compute["threads"] = threads->second;
  return load_run(options.out / run.run, how);
}

/// The task on which learning rates are compared, with samples of the training distribution that no
/// training uses. If the task consists of files, these samples are the distribution `id` or
/// `validation`. If neither exists, the training file is used.
std::unique_ptr<tasks::Task> selecting_task(const Config& config) {
  for (const tasks::Distribution& d : config.distributions()) {
    const bool is_new = d.name == "id" || d.name == "validation";
    if (config.kind().name == "files" && is_new) return config.task(d.name);
  }
  return config.task();
}

/// Trains a run and computes its loss on samples of the training distribution.
std::optional<CellRun> make_run(const GridRun& run, const Guess& guess,
                                const RecipeOptions& options) {
  std::optional<CellRun> result = train_run(run, guess, options);
  if (!result) return result;
  if (result->end != diverged) {
    const LoadedRun loaded = load(*result, options);
    const auto task = selecting_task(loaded.config);
    result->loss = evaluate_loss(*loaded.model, *task, validation(options));
  }
  if (!options.control.quiet) {
    std::fprintf(stderr, "%s  %s, step %lld, loss %.4f\n", run.name.c_str(), result->end.c_str(),
                 static_cast<long long>(result->step), result->loss.value_or(NAN));
  }
  return result;
}

void score(CellRun& run, const Cell& cell, const RecipeOptions& options) {
  const std::vector<Test> tests = tests_of(*cell.task);
  run.scores.assign(tests.size(), {});  // a diverged run has score 0 in every test
  if (run.end == diverged) return;
  const LoadedRun loaded = load(run, options);
  for (std::size_t i = 0; i < tests.size(); ++i) {
    const auto task = test_task(loaded.config, *cell.task, tests[i], options.scale);
    const tasks::Tally tally = evaluate(*loaded.model, *task, testing(options));
    const tasks::Metric& metric = tally.at(task->main_metric());
    run.scores[i] = {metric.mean(), metric.count};
  }
}

Json json_of(const CellRun& run, std::span<const Test> tests) {
  Json json{{"run", run.run},
            {"rate", run.rate},
            {"seed", run.seed},
            {"step", run.step},
            {"end", run.end},
            {"loss", run.loss ? Json(*run.loss) : Json()},
            {"seconds_by_token", run.seconds}};
  if (run.scores.empty()) return json;
  Json scores = Json::object();
  for (std::size_t i = 0; i < run.scores.size(); ++i) {
    scores[tests[i].name] = {{"value", run.scores[i].value}, {"of", run.scores[i].of}};
  }
  json["scores"] = scores;
  return json;
}

CellRun run_of(const Json& json, std::span<const Test> tests) {
  CellRun run{.run = json["run"].string(),
              .rate = json["rate"].string(),
              .seed = static_cast<std::uint64_t>(json["seed"].integer()),
              .step = json["step"].integer(),
              .end = json["end"].string(),
              .seconds = json["seconds_by_token"].number()};
  if (json["loss"].is_number()) run.loss = json["loss"].number();
  if (!json.contains("scores")) return run;
  for (const Test& test : tests) {
    const Json& of = json["scores"][test.name];
    run.scores.push_back({of["value"].number(), of["of"].integer()});
  }
  return run;
}

/// Operations per token of a training step on samples of the trained lengths.
double operations_of(const nn::Decoder& model, const tasks::Task& task) {
  double tokens = 0, pairs = 0;
  for_samples(task, {.samples = samples_of_guess}, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      const auto n = static_cast<double>(sample.tokens.size());
      tokens += n;
      pairs += n * (n + 1) / 2;
    }
  });
  return nn::work_of(model, tokens, pairs).operations / tokens;
}

}  // namespace

std::span<const std::string_view> rates(Scale scale) {
  return scale == Scale::paper ? rates_of_large : rates_of_small;
}
std::int64_t seeds(const RecipeOptions& options) { return seeds_of(options, 1, 3, 3); }

namespace {

/// Number of positions that a model must have for samples that are `times` times as long as in
/// training.
std::int64_t positions_at(std::int64_t times, const Config& config, const Cell& cell,
                          const RecipeOptions& options) {
  if (!cell.task->files.empty()) {
    std::int64_t longest = random_positions;
    for (const std::string_view test : cell.task->others) {
      longest = std::max(longest, config.task(test)->longest());
    }
    return longest;
  }
  Config longer = config;
  const std::int64_t length = times * cell.task->trained(options.scale);
  for (const auto& [option, value] : cell.task->options(options.scale, length, true)) {
    longer.set("task." + option, value);
  }
  const auto task = longer.kind().make(longer.task_values());
  if (config.model_settings().position_ids != tasks::PositionIds::random)
    return task->coupled_positions();
  return std::max(random_positions, task->longest());
}

}  // namespace

GridRun cell_run(const Cell& cell, std::string_view rate, std::int64_t number,
                 const RecipeOptions& options) {
  const bool is_own = !cell.task->files.empty();
  Config config = recipe_config(is_own ? cell.task->files : cell.task->kind);
  if (is_own) config.read_files();
  for (const auto& [option, value] :
       cell.task->options(options.scale, cell.task->trained(options.scale), false)) {
    config.set("task." + option, value);
  }
  set_all(config, decoder, options.scale);
  std::string heads(cell.mechanism->heads);
  if (const std::int64_t share = cell.mechanism->sixteenths) {
    heads += text('x', share * config.model_settings().decoder.width / 16);
  }
  config.set("model.heads", heads);
  config.set("model.positions", std::string(cell.mechanism->positions));
  for (std::string_view more = cell.mechanism->settings; !more.empty();) {
    const std::string_view one = more.substr(0, more.find(' '));
    const std::size_t equals = one.find('=');
    config.set(text("model.", one.substr(0, equals)), std::string(one.substr(equals + 1)));
    more.remove_prefix(std::min(more.size(), one.size() + 1));
  }
  if (config.model_settings().position_ids != tasks::PositionIds::places) {
    config.set("model.longest", text(positions_at(8, config, cell, options)));
  }
  set_all(config, options.settings);
  config.set("training.rate", std::string(rate));
  const std::uint64_t seed = set_seed(config, options, number);
  config.set("training.warm_up", text(config.training().schedule.steps / 20));
  return {text(cell.name(), '-', rate, "-seed-", seed), std::move(config)};
}

std::vector<GridRun> cell_runs(const Cell& cell, const RecipeOptions& options) {
  std::vector<GridRun> runs;
  const auto all = rates(options.scale);
  for (const std::string_view rate : all) runs.push_back(cell_run(cell, rate, 0, options));
  for (std::int64_t number = 1; number < seeds(options); ++number) {
    runs.push_back(cell_run(cell, all.front(), number, options));
  }
  return runs;
}

std::vector<Test> tests_of(const MatrixTask& task) {
  std::vector<Test> tests;
  if (task.files.empty()) tests = {{"id", 1}, {"2x", 2}, {"4x", 4}, {"8x", 8}};
  for (const std::string_view other : task.others) tests.push_back({std::string(other), 0});
  return tests;
}

std::unique_ptr<tasks::Task> test_task(const Config& config, const MatrixTask& task,
                                       const Test& test, Scale scale) {
  if (test.factor == 0) return config.task(test.name);
  if (test.factor == 1) return config.task();
  Config longer = config;
  for (const auto& [option, value] : task.options(scale, test.factor * task.trained(scale), true)) {
    longer.set("task." + option, value);
  }
  return longer.task();
}

Guess guess_of(const tasks::Task& task) {
  std::map<std::int32_t, double> times;
  double all = 0;
  for_samples(task, {.samples = samples_of_guess}, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      for (std::size_t i = 0; i < sample.targets.size(); ++i) {
        if (sample.targets[i] == tasks::Sample::not_counted) continue;
        const double weight = sample.weights.empty() ? 1 : static_cast<double>(sample.weights[i]);
        times[sample.targets[i]] += weight;
        all += weight;
      }
    }
  });
  Guess guess;
  double most = 0;
  for (const auto& [target, count] : times) {
    if (count > 0) guess.loss -= count / all * std::log(count / all);
    if (count <= most) continue;
    guess.answer = target;
    most = count;
  }
  return guess;
}

double score_of(const Guess& guess, const tasks::Task& task) {
  tasks::Tally tally;
  for_samples(task, {.samples = samples_of_guess}, [&](std::span<const tasks::Sample> samples) {
    for (const tasks::Sample& sample : samples) {
      task.score(sample, std::vector<std::int32_t>(sample.asked.size(), guess.answer), tally);
    }
  });
  return tally.at(task.main_metric()).mean();
}

bool is_hopeless(std::span<const double> losses, double guess) {
  if (losses.empty()) return false;
  const std::size_t last = std::max<std::size_t>(1, losses.size() / 10);
  double sum = 0;
  for (const double loss : losses.last(last)) sum += loss;
  return sum / static_cast<double>(last) >= hopeless_share * guess;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

bool CellResult::hopeless() const {
  return std::ranges::all_of(runs, [](const CellRun& run) { return run.end == given_up; });
}

double CellResult::seconds() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto* some : {&trials, &runs}) {
    for (const CellRun& run : *some) least = std::min(least, run.seconds);
  }
  return least;
}

std::vector<double> CellResult::scores(std::size_t test) const {
  std::vector<double> values;
  for (const CellRun& run : runs) values.push_back(run.scores[test].value);
  return values;
}

Json json_of(const CellResult& result, const MatrixTask& task) {
  const std::vector<Test> tests = tests_of(task);
  Json trials = Json::array(), runs = Json::array();
  for (const CellRun& run : result.trials) trials.push_back(json_of(run, tests));
  for (const CellRun& run : result.runs) runs.push_back(json_of(run, tests));
  Json guess{{"loss", result.guessed_loss}};
  for (std::size_t i = 0; i < tests.size(); ++i) guess[tests[i].name] = result.guessed[i];
  return {{"commit", result.commit},
          {"rate", result.rate},
          {"parameters", result.parameters},
          {"operations_by_token", result.operations},
          {"guess", guess},
          {"trials", trials},
          {"runs", runs}};
}

bool make_cell(const Cell& cell, const RecipeOptions& options) {
  if (read_cell(cell, options)) return true;
  CellResult result{.commit = std::string(commit), .rate = {}};
  const Config config = cell_run(cell, rates(options.scale)[0], 0, options).config;
  const Guess guess = guess_of(*config.task());
  result.guessed_loss = guess.loss;
  for (const Test& test : tests_of(*cell.task)) {
    result.guessed.push_back(score_of(guess, *test_task(config, *cell.task, test, options.scale)));
  }
  for (const std::string_view rate : rates(options.scale)) {
    const auto run = make_run(cell_run(cell, rate, 0, options), guess, options);
    if (!run) return false;
    result.trials.push_back(*run);
  }
  const auto best = std::ranges::min_element(result.trials, {}, [](const CellRun& run) {
    return run.loss.value_or(std::numeric_limits<double>::infinity());
  });
  result.rate = best->rate;
  // If the first seed is hopeless at every learning rate, the other seeds are not trained.
  const bool hopeless =
      std::ranges::all_of(result.trials, [](const CellRun& run) { return run.end == given_up; });
  for (std::int64_t number = 0; number < (hopeless ? 1 : seeds(options)); ++number) {
    std::optional<CellRun> run = *best;
    if (number > 0) {
      run = make_run(cell_run(cell, result.rate, number, options), guess, options);
    }
    if (!run) return false;
    score(*run, cell, options);
    result.runs.push_back(std::move(*run));
  }
  for (const CellRun& run : result.runs) {
    if (run.end == diverged) continue;
    const LoadedRun loaded = load(run, options);
    result.parameters = loaded.model->parameters().count();
    result.operations = operations_of(*loaded.model, *loaded.task);
    break;
  }
  Json json = json_of(result, *cell.task);
  json["configurations"] = sum_of(cell, options);
  write_atomically(file_of(cell, options), json.dump(1) + "\n");
  return true;
}

std::optional<CellResult> read_cell(const Cell& cell, const RecipeOptions& options) {
  const fs::path file = file_of(cell, options);
  if (!fs::exists(file)) return std::nullopt;
  const auto json = Json::parse(read_text(file, 1 << 24));
  LONGHAND_CHECK(json && json->is_object(), file.string(),
                 ": expected a JSON object with the results of one mechanism on one task");
  if ((*json)["configurations"].string() != sum_of(cell, options)) return std::nullopt;
  const std::vector<Test> tests = tests_of(*cell.task);
  CellResult result{.commit = (*json)["commit"].string(),
                    .rate = (*json)["rate"].string(),
                    .parameters = (*json)["parameters"].integer(),
                    .operations = (*json)["operations_by_token"].number(),
                    .guessed_loss = (*json)["guess"]["loss"].number()};
  for (const Test& test : tests) result.guessed.push_back((*json)["guess"][test.name].number());
  for (const Json& run : (*json)["trials"]) result.trials.push_back(run_of(run, tests));
  for (const Json& run : (*json)["runs"]) result.runs.push_back(run_of(run, tests));
  return result;
}

}  // namespace longhand::app::matrix
