#include <algorithm>
#include <map>

#include "apps/recipes/chacal_boxes.h"
#include "apps/run/batches.h"
#include "apps/run/evaluation.h"
#include "core/error.h"
#include "nn/training/trainer.h"

/// ChaCAL, Table 2: loss, exact match and training time on the boxes task.
namespace longhand::app::chacal_table2 {
namespace {

/// The scores of a model's runs on test samples.
struct Scores {
  std::vector<double> losses, exact;  // one value per run
  tasks::Tally tally;                 // scores over the samples of all runs
};

Scores score(const BoxesStudy& study, const BoxesModel& model, const RecipeOptions& options) {
  Scores scores;
  for (const GridRun& run : boxes_runs(study, model, options)) {
    const LoadedRun loaded = load_finished(run, options, recipes_of_boxes());
    const auto task = loaded.config.task("test");
    // The seed differs from that of evaluations during training, so these samples are new.
    EvaluationOptions o{.samples = run.evaluate_samples(), .seed = options.seed + 1'000'000};
    scores.losses.push_back(evaluate_loss(*loaded.model, *task, o));
    o.reading = Reading::decoded;
    const tasks::Tally tally = evaluate(*loaded.model, *task, o);
    scores.exact.push_back(tally.at("exact").mean());
    scores.tally.add(tally);
  }
  return scores;
}

/// The training time of each configuration relative to the first one. In every round, each model
/// trains for a few steps on the same data. The result is the median over seven rounds. The models
/// alternate so that other load on the machine affects all of them equally.
std::vector<double> time_ratios(const std::vector<Config>& configs) {
  constexpr int turns = 7;
  const Config& first = configs.front();
  const auto backend = first.compute().make();
  const std::shared_ptr<const tasks::Task> task = first.task();
  std::vector<std::unique_ptr<nn::Decoder>> models;
  for (const Config& config : configs) {
    models.push_back(
        std::make_unique<nn::Decoder>(*backend, config.model(*task), config.training().seed));
  }
  std::vector<std::vector<double>> ratios(configs.size());
  for (int turn = 0; turn < turns; ++turn) {
    std::vector<double> seconds;
    for (std::size_t i = 0; i < configs.size(); ++i) {
      std::vector<double> steps;
      nn::TrainerHooks hooks;
      hooks.report = [&](const nn::StepReport& r) { steps.push_back(r.seconds - r.waited); };
      const TrainingSettings training = configs[i].training();
      nn::Trainer(*models[i], training_batches(task, training.seed, {.sequences = training.batch}),
                  {.steps = 4, .schedule = training.schedule, .optimizer = training.adam}, hooks)
          .run();
      seconds.push_back(*std::min_element(steps.begin() + 1, steps.end()));
    }
    for (std::size_t i = 0; i < configs.size(); ++i) {
      ratios[i].push_back(seconds[i] / seconds.front());
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& list : ratios) {
    std::ranges::nth_element(list, list.begin() + turns / 2);
    medians.push_back(list[turns / 2]);
  }
  return medians;
}

/// A table of the metrics whose names begin with `kind`, such as "depth 2-3" for the kind "depth".
/// There is one row per model and one column per metric.
std::string strata(const std::vector<std::pair<std::string, Scores>>& scores,
                   std::string_view kind) {
  std::vector<std::string> header{""}, names;
  for (const auto& [name, of] : scores) {
    for (const tasks::Metric& metric : of.tally.metrics()) {
      const bool known = std::ranges::find(names, metric.name) != names.end();
      if (metric.name.starts_with(kind) && !known) names.push_back(metric.name);
    }
  }
  const auto first_number = [&](const std::string& name) {
    return std::stoi(name.substr(kind.size()));
  };
  std::ranges::sort(names, {}, first_number);
  for (const std::string& name : names) header.push_back(html::escape(name));
  std::vector<std::vector<std::string>> body;
  for (const auto& [name, of] : scores) {
    std::vector<std::string> row{html::escape(name)};
    for (const std::string& column : names) {
      const auto metrics = of.tally.metrics();
      const auto metric = std::ranges::find(metrics, column, &tasks::Metric::name);
      row.push_back(metric == metrics.end() ? "" : text_of(*metric));
    }
    body.push_back(std::move(row));
  }
  return names.empty() ? "" : html::table(header, body);
}

/// The number of a model's parameters in millions, without the table of learned positions. The
/// paper's numbers are so small that they cannot include this table.
double size_of(const Config& config) {
  const auto backend = make_backend("cpu", {});
  const auto task = config.task();
  const nn::DecoderConfig shape = config.model(*task);
  const nn::Decoder model(*backend, shape, 1);
  return static_cast<double>(model.parameters().count() - shape.longest * shape.width) / 1e6;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  for (const BoxesStudy& study : boxes_studies(options)) {
    std::vector<Config> configs;
    for (const BoxesModel& model : study.models) {
      configs.push_back(boxes_runs(study, model, options).front().config);
    }
    std::vector<std::pair<std::string, Scores>> scores;
    const std::vector<double> times = study.advanced ? time_ratios(configs) : std::vector<double>();
    for (std::size_t i = 0; i < study.models.size(); ++i) {
      const BoxesModel& model = study.models[i];
      const Scores& mine = scores.emplace_back(model.name, score(study, model, options)).second;
      const std::int64_t samples = mine.tally.at("exact").count / study.runs;
      const std::string version = study.version();
      add_row(result, model.name, version + " exact match", mine.exact, model.exact(study.advanced),
              samples);
      add_row(result, model.name, version + " loss", mine.losses, model.loss(study.advanced));
      // Time and size are reported only for the advanced version of the boxes task.
      if (!study.advanced) continue;
      result.rows.push_back({model.name, "training time", times[i], {}, {}, model.time});
      result.rows.push_back({model.name, "size, million", size_of(configs[i]), {}, {}, model.size});
    }
    result.sections.emplace_back(
        study.version() + ": exact match by depth and by operations",
        html::paragraph("The depth of a box is the number of operations that its contents passed "
                        "through. L standard layers reach 2^L - 1 steps (Theorem 1).") +
            strata(scores, "depth ") + strata(scores, "operations "));
    result.sections.emplace_back(study.version() + ": during training",
                                 boxes_curves(study, options));
  }
  result.sections.emplace_back(
      "What is counted",
      html::paragraph(
          "Exact match: greedy decoding to the end of the answer is completely right, on initial "
          "states that training never draws; Wilson's interval with one run, Student's with "
          "several. Loss: over the tokens of the answer and its end, under teacher forcing. "
          "Training time: of one step, relative to the first model's, measured in this process on "
          "the same batches with the models taking turns; the median of seven turns. Size: without "
          "the table of positions, which the paper's figures do not seem to include. Columns have "
          "the paper's names at every scale; the configurations show how large the task is here."));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/table2",
     .summary = "standard transformers of 2 to 5 layers against 2 layers with ChaCAL on the boxes",
     .scales = {{Scale::smoke, "2 layers, 4 boxes, up to 15 moves, 500 steps: a minute on 2 cores"},
                {Scale::laptop,
                 "2 and 3 layers, 6 boxes, up to 15 moves, width 64, three seeds: 25 minutes on "
                 "one core"},
                {Scale::extended,
                 "the paper's rules and samples at width 128, both versions: hours for each run"},
                {Scale::paper, "the paper's sizes, both versions, all runs; for a GPU"}},
     .runs = [](const RecipeOptions& options) { return boxes_runs(options); },
     .report = report,
     .reuse_from = recipes_of_boxes()})};

}  // namespace
}  // namespace longhand::app::chacal_table2
