#include "apps/recipes/chacal_boxes.h"

#include "apps/html/chart.h"

namespace longhand::app {
namespace {

constexpr std::string_view recipes_of_boxes[] = {"chacal/table2", "chacal/fig4"};

const std::vector<BoxesModel> table2{
    {"Standard, L = 2", "standard-2", false, 2, 6.4, 1.00, .0543, .451, .0626, .588},
    {"Standard, L = 3", "standard-3", false, 3, 9.6, 1.46, .0316, .653, .0198, .848},
    {"Standard, L = 4", "standard-4", false, 4, 12.7, 1.90, .0129, .837, .0075, .943},
    {"Standard, L = 5", "standard-5", false, 5, 15.9, 2.37, .0102, .846, .0040, .970},
    {"ChaCAL, L = 2", "chacal-2", true, 2, 6.4, 1.36, .0234, .706, .0012, .991}};

/// GPT-2 and its training as the paper has them, apart from sizes.
const Settings gpt2{{"model.order", "sequential"},  {"model.activation", "gelu_tanh"},
                    {"model.positions", "learned"}, {"model.tied", "1"},
                    {"model.start", "residual"},    {"training.beta2", "0.98"},
                    {"training.decay", "0.01"},     {"training.schedule", "linear"}};

/// The advanced version with six boxes that hold one object at most, so that all operations are
/// moves: small enough for two cores, and as deep as its operations are many. With four boxes a
/// guess is right half of the time. Positions are rotary: a table of them would first have to learn
/// which position comes after which.
BoxesStudy small_study(Scale scale) {
  BoxesStudy study{.settings = gpt2, .heads = 4, .models = table2};
  const int most_layers = scale == Scale::smoke ? 2 : 3;
  std::erase_if(study.models, [&](const BoxesModel& model) { return model.layers > most_layers; });
  Settings& s = study.settings;
  s["model.positions"] = "rotary";
  s.insert({{"task.version", "advanced"},
            {"task.boxes", "6"},
            {"task.objects", "20"},
            {"task.most-items", "1"},
            {"task.operations", "15"},
            {"model.width", "64"},
            {"model.inner", "256"},
            {"model.deviation", "0.1"},
            {"training.set", "1000000"},
            {"training.batch", "32"},
            {"training.rate", "2e-3"},
            {"training.warm_up", "200"},
            {"training.evaluate_samples", "1000"}});
  if (scale == Scale::smoke) {
    s.insert({{"training.steps", "500"}, {"training.evaluate_every", "125"}});
  } else {
    s.insert({{"training.steps", "16000"},
              {"training.checkpoint_every", "500"},
              {"training.evaluate_every", "1000"}});
  }
  return study;
}

BoxesStudy paper_study(bool advanced) {
  BoxesStudy study{
      .advanced = advanced, .settings = gpt2, .runs = advanced ? 3 : 4, .models = table2};
  study.settings.insert({{"task.version", advanced ? "advanced" : "default"},
                         {"model.width", "512"},
                         {"model.inner", "2048"},
                         {"training.set", advanced ? "1000000" : "500000"},
                         {"training.steps", "25000"},
                         {"training.batch", "256"},
                         {"training.rate", "3e-4"},
                         {"training.warm_up", "2000"},
                         {"training.checkpoint_every", "1000"},
                         {"training.evaluate_every", "1000"},
                         {"training.evaluate_samples", advanced ? "10000" : "5000"}});
  return study;
}

}  // namespace

std::vector<BoxesStudy> boxes_studies(const RecipeOptions& options) {
  std::vector<BoxesStudy> studies;
  if (options.scale == Scale::paper) {
    studies = {paper_study(false), paper_study(true)};
  } else {
    studies = {small_study(options.scale)};
  }
  if (options.seeds > 0) {
    for (BoxesStudy& study : studies) study.runs = options.seeds;
  }
  return studies;
}

std::vector<GridRun> boxes_runs(const BoxesStudy& study, const BoxesModel& model,
                                const RecipeOptions& options) {
  std::vector<GridRun> runs;
  for (std::int64_t number = 0; number < study.runs; ++number) {
    Config config("boxes");
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(number);
    const std::string heads = std::to_string(study.heads);
    config.set("model.heads", "softmax:" + heads + (model.chacal ? ";chacal:" + heads : ""));
    config.set("model.layers", std::to_string(model.layers));
    config.set("training.seed", std::to_string(seed));
    for (const auto& [key, value] : study.settings) config.set(key, value);
    for (const auto& [key, value] : options.settings) config.set(key, value);
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
    paths.push_back(run_path(run, options, recipes_of_boxes));
  }
  return paths;
}

bool train_boxes(std::span<const GridRun> runs, const RecipeOptions& options) {
  return train_runs(runs, options, recipes_of_boxes);
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
