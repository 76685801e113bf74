#include "apps/recipes/chacal_boxes.h"

#include "apps/html/chart.h"

namespace longhand::app {
namespace {

const std::vector<BoxesModel> table2{
    {"Standard, L = 2", "standard-2", false, 2, 6.4, 1.00, .0543, .451, .0626, .588},
    {"Standard, L = 3", "standard-3", false, 3, 9.6, 1.46, .0316, .653, .0198, .848},
    {"Standard, L = 4", "standard-4", false, 4, 12.7, 1.90, .0129, .837, .0075, .943},
    {"Standard, L = 5", "standard-5", false, 5, 15.9, 2.37, .0102, .846, .0040, .970},
    {"ChaCAL, L = 2", "chacal-2", true, 2, 6.4, 1.36, .0234, .706, .0012, .991}};

/// Settings for the advanced version of the boxes task. At the smoke and laptop scales, the task is
/// small enough for two cores. There are six boxes, because with four boxes, guessing would be
/// right half of the time. Each box contains at most one object, so all operations are moves. The
/// depth of a box (the number of operations that its contents passed through) is then the number
/// of moves of its object. These scales use rotary positions, because with a table of learned
/// positions a model would first have to learn the order of positions. The extended scale has the
/// paper's rules and samples.
constexpr ScaledSetting advanced_settings[] = {
    {"task.version", "advanced", "advanced", "advanced"},
    {"task.boxes", "6", "6", "", ""},
    {"task.objects", "20", "20", "", ""},
    {"task.most-items", "1", "1", "", ""},
    {"task.operations", "15", "15", "", ""},
    {"model.width", "64", "64", "512", "128"},
    {"model.inner", "256", "256", "2048", "512"},
    {"model.positions", "rotary", "rotary", "learned", "learned"},
    {"model.deviation", "0.1", "0.1", "", ""},
    {"training.set", "1000000", "1000000", "1000000"},
    {"training.steps", "500", "8000", "25000", "25000"},
    {"training.batch", "32", "32", "256", "256"},
    {"training.rate", "2e-3", "2e-3", "3e-4", "1e-3"},
    {"training.warm_up", "200", "200", "2000", "2000"},
    {"training.checkpoint_every", "", "500", "1000", "250"},
    {"training.evaluate_every", "125", "1000", "1000"},
    {"training.evaluate_samples", "1000", "1000", "10000"}};
const Settings default_settings{
    {"task.version", "default"}, {"training.set", "500000"}, {"training.evaluate_samples", "5000"}};

BoxesStudy study_of(Scale scale, bool advanced) {
  BoxesStudy study{.advanced = advanced, .models = table2};
  set_all(study.config, chacal_gpt2);
  set_all(
      study.config,
      {{"model.start", "residual"}, {"training.decay", "0.01"}, {"training.schedule", "linear"}});
  set_all(study.config, advanced_settings, scale);
  if (!advanced) set_all(study.config, default_settings);
  if (scale == Scale::paper) {
    study.runs = advanced ? 3 : 4;
  } else if (scale == Scale::extended) {
    study.heads = 4;
    study.runs = advanced ? 3 : 1;
  } else {
    study.heads = 4;
    study.runs = scale == Scale::smoke ? 1 : 3;
    const int most_layers = scale == Scale::smoke ? 2 : 3;
    std::erase_if(study.models, [&](const BoxesModel& m) { return m.layers > most_layers; });
  }
  return study;
}

}  // namespace

std::vector<BoxesStudy> boxes_studies(const RecipeOptions& options) {
  std::vector<BoxesStudy> studies;
  const bool both = options.scale == Scale::paper || options.scale == Scale::extended;
  if (both) studies.push_back(study_of(options.scale, false));
  studies.push_back(study_of(options.scale, true));
  for (BoxesStudy& study : studies) {
    if (options.seeds > 0) study.runs = options.seeds;
  }
  return studies;
}

std::vector<GridRun> boxes_runs(const BoxesStudy& study, const BoxesModel& model,
                                const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < study.runs; ++number) {
    Config config = study.config;
    const std::string heads = std::to_string(study.heads);
    config.set("model.heads", "softmax:" + heads + (model.chacal ? ";chacal:" + heads : ""));
    config.set("model.layers", std::to_string(model.layers));
    const std::uint64_t seed = set_seed(config, options, number);
    set_all(config, options.settings);
    const std::string name = (study.advanced ? "advanced-" : "default-") + model.id;
    runs.push_back({name + "-seed-" + std::to_string(seed), std::move(config)});
  }
  return runs;
}

std::vector<GridRun> boxes_runs(const RecipeOptions& options) {
  std::vector<GridRun> all;
  for (const BoxesStudy& study : boxes_studies(options)) {
    for (const BoxesModel& model : study.models) {
      for (GridRun& run : boxes_runs(study, model, options)) all.push_back(std::move(run));
    }
  }
  return all;
}

std::vector<std::filesystem::path> boxes_paths(const BoxesStudy& study, const BoxesModel& model,
                                               const RecipeOptions& options) {
  std::vector<std::filesystem::path> paths;
  for (const GridRun& run : boxes_runs(study, model, options)) {
    paths.push_back(run_path(run, options, recipes_of_boxes()));
  }
  return paths;
}

std::span<const std::string_view> recipes_of_boxes() {
  static constexpr std::string_view recipes[] = {"chacal/table2", "chacal/fig4"};
  return recipes;
}

std::string boxes_curves(const BoxesStudy& study, const RecipeOptions& options) {
  html::LineChart chart{.x_label = "step", .y_label = "exact match, test", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  for (const BoxesModel& model : study.models) {
    const auto paths = boxes_paths(study, model, options);
    const Curve curve = curve_over(paths, "test/exact");
    html::Series series{.name = model.name, .points = {}, .marks = true};
    for (std::size_t i = 0; i < curve.steps.size(); ++i) {
      html::Point point{.x = curve.steps[i], .y = curve.mean[i]};
      if (paths.size() > 1) {
        point.low = curve.least[i];
        point.high = curve.most[i];
      }
      series.points.push_back(point);
    }
    chart.series.push_back(std::move(series));
  }
  return html::figure(line_chart(chart),
                      study.version() + " version: exact match during training" +
                          (study.runs > 1 ? ", mean and range of the runs" : ""));
}

}  // namespace longhand::app
