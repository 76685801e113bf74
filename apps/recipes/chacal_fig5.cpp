#include "apps/html/chart.h"
#include "apps/recipes/chacal.h"

/// ChaCAL, Figure 5: accuracy, and the steps until accuracy is perfect, as a function of gamma.
namespace longhand::app::chacal_fig5 {
namespace {

std::vector<std::string> gammas(Scale scale) {
  if (scale == Scale::smoke) return {"0", "0.5", "0.9"};
  if (scale == Scale::laptop) return {"0", "0.3", "0.5", "0.7", "0.9", "0.98"};
  if (scale == Scale::extended) return {"0.5", "0.7", "0.9", "0.98"};
  return {"0",   "0.1", "0.2", "0.3",  "0.4",  "0.5", "0.6",
          "0.7", "0.8", "0.9", "0.95", "0.98", "0.99"};
}

struct GammaRun {
  std::string gamma;
  GridRun run;
};

std::vector<GammaRun> gamma_runs(const RecipeOptions& options) {
  std::vector<GammaRun> all;
  for (const std::string& gamma : gammas(options.scale)) {
    for (std::int64_t number = 0; number < seeds_of(options, 1, 3, 4); ++number) {
      GridRun run = toy_run({.chacal = true}, number, options, {{"model.gamma", gamma}});
      // The runs with the default gamma are shared with Table 1.
      if (gamma != "0.9") run.name = "gamma-" + gamma + "-" + run.name;
      all.push_back({gamma, std::move(run)});
    }
  }
  return all;
}

std::vector<GridRun> runs_of(const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (GammaRun& one : gamma_runs(options)) runs.push_back(std::move(one.run));
  return runs;
}

constexpr std::string_view reuse_from[] = {"chacal/table1", "chacal/fig3"};
constexpr double perfect = 0.9995;  // the smallest share that is printed as 100.0%

/// The step of a run's first evaluation with perfect accuracy. No value if there is none.
std::optional<double> first_perfect(const std::filesystem::path& run) {
  for (const Json& line : RunFolder(run).metrics()) {
    const Json* const found = line.find("train/choices");
    if (found && found->is_number() && found->number() >= perfect) {
      return line["step"].number();
    }
  }
  return std::nullopt;
}

void report(const RecipeOptions& options, RecipeResult& result) {
  html::Series accuracy{.name = "ChaCAL L=1", .points = {}, .marks = true}, steps = accuracy;
  const std::vector<GammaRun> all = gamma_runs(options);
  for (const std::string& gamma : gammas(options.scale)) {
    std::vector<double> shares, times;
    std::int64_t choices = 0;
    for (const GammaRun& one : all) {
      if (one.gamma != gamma) continue;
      const ToyScore score = score_toy(one.run, options, reuse_from);
      shares.push_back(score.accuracy());
      choices = score.tally.at("choices").count;
      const auto step = first_perfect(run_path(one.run, options, reuse_from));
      if (step) times.push_back(*step);
    }
    const std::string name = "gamma " + gamma;
    const Row row = add_row(result, name, "accuracy", shares, {}, choices);
    accuracy.points.push_back({std::stod(gamma), row.value, row.low, row.high});
    // At least one run never became perfect.
    if (times.size() < shares.size() || times.empty()) continue;
    const Row mean = add_row(result, name, "steps to 100%", times, {});
    steps.points.push_back({std::stod(gamma), mean.value, mean.low, mean.high});
  }
  html::LineChart first{.x_label = "gamma", .y_label = "accuracy", .series = {accuracy}};
  first.y_low = 0;
  first.y_high = 1;
  std::string content = html::figure(line_chart(first), "Accuracy against gamma");
  if (!steps.points.empty()) {
    const html::LineChart second{.x_label = "gamma", .y_label = "steps", .series = {steps}};
    content += html::figure(line_chart(second), "Steps to an accuracy of 99.95%");
  }
  result.sections.emplace_back(
      "Against gamma",
      content + html::paragraph(
                    "Steps to 100%: the first evaluation at which 99.95% of the choices are right, "
                    "printed if all runs reach it. The paper's figure counts epochs without "
                    "stating their length, and prints no numbers. It states that accuracy is "
                    "perfect from about 0.5 on and is reached soonest at about 0.9."));
}

const RegisterRecipe recipe{grid_recipe(
    {.id = "chacal/fig5",
     .summary = "accuracy of one ChaCAL layer, and steps to perfect accuracy, against gamma",
     .scales = {{Scale::smoke, "three gammas at the size of chacal/table1"},
                {Scale::laptop, "six gammas, three seeds: half an hour on one core"},
                {Scale::extended,
                 "four gammas, three seeds, at width 128 with all of the paper's samples: days on "
                 "two cores"},
                {Scale::paper, "thirteen gammas, four seeds, the paper's size; for a GPU"}},
     .runs = runs_of,
     .report = report,
     .reuse_from = reuse_from})};

}  // namespace
}  // namespace longhand::app::chacal_fig5
