#include <algorithm>

#include "apps/html/svg.h"
#include "apps/recipes/chacal.h"
#include "apps/recipes/scaling.h"

/// Defines the three scaling studies (Flip-Flop, chains and sorting): their models, sizes and
/// measures.
namespace longhand::app::scaling {
namespace {

using MakeStudy = Study (*)(Scale);

/// One size of a study: the number of training steps, and the width of the model.
struct Sized {
  std::int64_t steps = 0, width = 0;
};

std::vector<Sized> sizes_of(const Study& study) {
  std::vector<Sized> sizes;
  for (const std::int64_t steps : study.steps) sizes.push_back({steps, study.width});
  for (const std::int64_t width : study.widths) {
    if (width != study.width) sizes.push_back({study.middle_steps(), width});
  }
  return sizes;
}

GridRun run_of(const Study& study, const StudiedModel& model, Sized size,
               const RecipeOptions& options, std::int64_t number) {
  Config config = recipe_config(study.task);
  set_all(config, study.settings);
  set_all(config, model.settings);
  const double rate =
      study.rate * static_cast<double>(study.width) / static_cast<double>(size.width);
  set_all(config, {{"model.width", std::to_string(size.width)},
                   {"training.steps", std::to_string(size.steps)},
                   {"training.batch", std::to_string(study.batch)},
                   {"training.warm_up", std::to_string(std::min(study.warm_up, size.steps / 3))},
                   {"training.rate", html::number(rate, 4)},
                   {"training.evaluate_samples", "0"}});
  if (study.inner > 0) config.set("model.inner", std::to_string(study.inner * size.width));
  const std::uint64_t seed = set_seed(config, options, number);
  set_all(config, options.settings);
  return {text(model.id, "-steps-", size.steps, "-width-", size.width, "-seed-", seed),
          std::move(config)};
}

std::int64_t seeds(const RecipeOptions& options) { return seeds_of(options, 3, 3, 3); }

std::vector<GridRun> runs_of(const Study& study, const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const Sized size : sizes_of(study)) {
      for (const StudiedModel& model : study.models) {
        runs.push_back(run_of(study, model, size, options, number));
      }
    }
  }
  return runs;
}

std::unique_ptr<tasks::Task> task_of(const Measure& measure, const Config& config) {
  if (measure.task.empty()) return config.task(measure.distribution);
  tasks::OptionValues values = config.task_values();
  for (const auto& [option, value] : measure.task) values.set(option, value);
  return config.positioned(config.kind().make(values));
}

/// Evaluates a finished run in all measures of a study. Successive measures that use the same
/// samples share one evaluation.
std::vector<Scored> score(const Study& study, const GridRun& run, const RecipeOptions& options) {
  LoadedRun loaded = load_finished(run, options);
  // All runs are tested on the same samples, on which no run was trained.
  const EvaluationOptions fresh{.samples = study.test_samples, .seed = options.seed + 1000};
  std::vector<Scored> scores;
  std::optional<tasks::Tally> tally;
  for (std::size_t m = 0; m < study.measures.size(); ++m) {
    const Measure& measure = study.measures[m];
    const auto task = task_of(measure, run.config);
    if (!measure.is_share()) {
      scores.push_back({.error = evaluate_loss(*loaded.model, *task, fresh)});
      continue;
    }
    const Measure* const before = m == 0 ? nullptr : &study.measures[m - 1];
    const bool same =
        tally && before->distribution == measure.distribution && before->task == measure.task;
    if (!same) tally = evaluate(*loaded.model, *task, fresh);
    const tasks::Metric& metric = tally->at(measure.metric);
    const auto trials = static_cast<double>(metric.count);
    const double wrong = trials - metric.sum;
    scores.push_back({.error = tasks::smoothed_error(wrong, trials),
                      .trials = metric.count,
                      .none_wrong = wrong == 0,
                      .all_wrong = metric.sum == 0});
  }
  return scores;
}

void report(const Study& study, const RecipeOptions& options, RecipeResult& result) {
  std::vector<std::vector<Line>> lines(study.measures.size(),
                                       std::vector<Line>(study.models.size()));
  for (std::int64_t number = 0; number < seeds(options); ++number) {
    for (const Sized size : sizes_of(study)) {
      for (std::size_t i = 0; i < study.models.size(); ++i) {
        const GridRun run = run_of(study, study.models[i], size, options, number);
        const std::vector<Scored> scores = score(study, run, options);
        const auto samples = static_cast<double>(run.last_step() * run.config.training().batch);
        for (std::size_t m = 0; m < scores.size(); ++m) {
          Scored scored = scores[m];
          if (size.width == study.width) {
            scored.size = samples;
            lines[m][i].by_samples.push_back(scored);
          }
          if (size.steps == study.middle_steps()) {
            scored.size = static_cast<double>(size.width);
            lines[m][i].by_width.push_back(scored);
          }
        }
      }
    }
  }
  tell(study, lines, result);
}

/// Selects one of three values by scale.
template <class T>
T by_scale(Scale scale, T smoke, T laptop, T paper) {
  return scale == Scale::smoke ? smoke : scale == Scale::laptop ? laptop : paper;
}

using Numbers = std::vector<std::int64_t>;

Study flip_flop(Scale scale) {
  Study study{
      .task = "flip-flop",
      .settings = {{"task.instructions", by_scale(scale, "64", "512", "512")},
                   {"model.layers", by_scale(scale, "2", "6", "6")},
                   {"training.checkpoint_every", by_scale(scale, "0", "100", "500")}},
      .models = {{"gpt", "GPT + RoPE", {{"model.heads", "softmax:4"}}},
                 {"fal", "FAL-GPT + RoPE", {{"model.heads", "softmax:3,fal:1"}}}},
      .measures = {{"F(0.6), sequences", "train", {}, "sequences", {0.0, 0.0}},
                   {"F(0.98), reads", "sparse", {}, "reads"},
                   {"F(0.98), sequences", "sparse", {}, "sequences", {1 - 0.151, 0.0}},
                   {"twice the length, reads", "2x", {}, "reads"},
                   {"twice the length, sequences", "2x", {}, "sequences", {0.5, 0.0}}},
      .batch = by_scale(scale, 16, 8, 128),
      .steps = by_scale<Numbers>(scale, {50, 200, 800}, {60, 240, 960}, {750, 3000, 12'000}),
      .widths = by_scale<Numbers>(scale, {32, 64, 128}, {16, 32, 64}, {32, 64, 128}),
      .width = 64,
      .rate = by_scale(scale, 1e-3, 1e-3, 1e-4),
      .warm_up = 100,
      .test_samples = by_scale(scale, 200, 200, 1000),
      .paper_samples = 12'000 * 128};
  study.remarks = text(
      "The share of wrong reads, and of sequences with a wrong read, under teacher forcing. "
      "Training uses F(0.6). ",
      by_scale(scale,
               "64 instructions and 2 layers replace the paper's 512 and 6, so these figures "
               "belong to another task.",
               "Model and lengths are the paper's; the peak rate is 1e-3 instead of 1e-4.",
               "All is the paper's."));
  return study;
}

Study chains(Scale scale) {
  Study study{
      .task = "chains",
      .settings = {{"model.start", "residual"},
                   {"training.schedule", "linear"},
                   {"task.blocks", by_scale(scale, "8", "16", "16")},
                   {"training.checkpoint_every", by_scale(scale, "0", "500", "600")}},
      .models = {},
      .measures = {{"choices", "", {}, "choices", {}}, {"loss", "", {}, "", {}}},
      .batch = by_scale(scale, 32, 32, 128),
      .steps = by_scale<Numbers>(scale, {100, 400, 1600}, {400, 1600, 6400}, {1500, 6000, 24'000}),
      .widths = by_scale<Numbers>(scale, {16, 32, 64}, {16, 32, 64}, {128, 256, 512}),
      .width = by_scale(scale, 32, 64, 512),
      .inner = 4,
      .rate = by_scale(scale, 4e-3, 2e-3, 3e-4),
      .warm_up = by_scale(scale, 250, 500, 8000),
      .test_samples = by_scale(scale, 200, 200, 1000),
      .paper_samples = 24'000 * 128};
  study.settings.insert(chacal_gpt2.begin(), chacal_gpt2.end());
  const std::string heads = scale == Scale::paper ? "8" : "4";
  const auto add = [&](bool chacal, const std::string& layers, double error, double loss) {
    study.models.push_back(
        {(chacal ? "chacal-" : "standard-") + layers,
         (chacal ? "ChaCAL L=" : "Standard L=") + layers,
         {{"model.heads", (chacal ? "chacal:" : "softmax:") + heads}, {"model.layers", layers}}});
    study.measures[0].paper.emplace_back(error);
    study.measures[1].paper.emplace_back(loss);
  };
  add(false, "1", 1 - 0.499, 1.20);
  if (scale != Scale::smoke) add(false, "3", 1 - 0.909, 0.21);
  add(true, "1", 0.0, 0.0);
  study.remarks =
      text("The share of wrong choices, each one of eight, and their mean loss. ",
           by_scale(scale, "Samples have 64 tokens where the paper's have 128. ",
                    "The task is the paper's. ", "The task and the models are the paper's. "),
           by_scale(scale, "The paper's width is 512.", "The paper's width is 512.", ""),
           " More samples do not help where one standard layer lacks information: by the theorem "
           "its error stays at ",
           scale == Scale::smoke ? "0.51." : "0.68.");
  return study;
}

Study sorting(Scale scale) {
  const std::int64_t longest = by_scale(scale, 6, 20, 20);
  const std::string further = std::to_string(longest * 5 / 2), twice = std::to_string(longest * 2);
  const std::string far = std::to_string(longest * 5);
  Study study{.task = "sorting",
              .settings = {{"model.positions", "none"},
                           {"model.order", "sequential"},
                           {"model.layers", "2"},
                           {"model.heads", by_scale(scale, "softmax:2", "softmax:4", "softmax:16")},
                           {"task.numbers", by_scale(scale, "40", "100", "100")},
                           {"task.long", std::to_string(longest)},
                           {"training.schedule", "one_cycle"},
                           {"training.checkpoint_every", by_scale(scale, "0", "5000", "2000")}},
              .models = {{"none", "no hint", {{"task.hint", "none"}}},
                         {"successor", "successor hint", {{"task.hint", "successor"}}}},
              .measures = {},
              .batch = by_scale(scale, 32, 64, 1024),
              .steps = by_scale<Numbers>(scale, {300, 1200, 4800}, {2500, 10'000, 40'000},
                                         {6250, 25'000, 100'000}),
              .widths = by_scale<Numbers>(scale, {16, 32, 64}, {16, 32, 64}, {256, 512, 1024}),
              .width = by_scale(scale, 32, 64, 1024),
              .inner = 2,
              .rate = by_scale(scale, 4e-3, 2e-3, 1e-5),
              .warm_up = by_scale(scale, 100, 200, 10'000),
              .test_samples = by_scale(scale, 200, 500, 1000),
              .paper_samples = 100'000 * 1024};
  const auto add = [&](const std::string& length, bool copies, const char* metric,
                       std::vector<Printed> paper) {
    Settings options{{"length", length}};
    if (!copies) options["repeat"] = "1";
    study.measures.push_back(
        {text("length ", length, copies ? "" : " without copies", ", ", metric), "",
         std::move(options), metric, std::move(paper)});
  };
  add(twice, true, "tokens", {});
  add(twice, true, "sequences", {});
  add(twice, false, "tokens", {});
  add(twice, false, "sequences", {});
  add(further, true, "tokens", {});
  add(further, true, "sequences", {1 - 0.89, 1 - 0.992});
  add(further, false, "sequences", {});
  if (scale != Scale::smoke) add(far, true, "sequences", {1.0, 1 - 0.524});
  study.remarks = text(
      "The share of sequences that are not completely sorted, and of wrong tokens, under teacher "
      "forcing; a sequence that is right here is also right in decoding. Training uses lengths up "
      "to ",
      longest, ". A hinted model uses half of its samples for sorting. ",
      by_scale(scale,
               text("Length ", further, " replaces the paper's 50. The paper's width is 1024."),
               std::string("The task is the paper's, and its width is 1024."),
               std::string("All is the paper's.")));
  return study;
}

RegisterRecipe scaling_recipe(const std::string& id, const std::string& summary, MakeStudy study,
                              std::map<Scale, std::string> scales) {
  return RegisterRecipe(grid_recipe(
      {.id = id,
       .summary = summary,
       .scales = std::move(scales),
       .runs = [=](const RecipeOptions& options) { return runs_of(study(options.scale), options); },
       .report = [=](const RecipeOptions& options,
                     RecipeResult& result) { report(study(options.scale), options, result); }}));
}

const RegisterRecipe recipes_of_scaling[] = {
    scaling_recipe(
        "scaling/flip-flop",
        "Flip-Flop at 1, 4 and 16 times the samples and three widths, with fits", flip_flop,
        {{Scale::smoke, "64 instructions, 2 layers: two and a half minutes on one core"},
         {Scale::laptop, "the paper's model and lengths, widths 16 to 64: 40 minutes on one core"},
         {Scale::paper, "up to the paper's samples; for a GPU"}}),
    scaling_recipe("scaling/chains",
                   "chains at 1, 4 and 16 times the samples and three widths, with fits", chains,
                   {{Scale::smoke, "one layer of each, 64 tokens: a minute and a half on one core"},
                    {Scale::laptop, "widths 16 to 64, 128 tokens: half an hour on one core"},
                    {Scale::paper, "up to the paper's samples and width; for a GPU"}}),
    scaling_recipe(
        "scaling/sorting",
        "sorting with and without a hint at 1, 4 and 16 times the samples and three widths, with "
        "fits",
        sorting,
        {{Scale::smoke, "numbers 1 to 40, up to 6 of them: a minute on one core"},
         {Scale::laptop, "the paper's task, widths 16 to 64: a quarter of an hour on one core"},
         {Scale::paper, "up to the paper's samples and width; for a GPU"}})};

}  // namespace
}  // namespace longhand::app::scaling
