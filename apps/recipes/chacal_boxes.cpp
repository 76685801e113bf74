#include "apps/recipes/chacal_boxes.h"

#include <algorithm>

#include "apps/html/chart.h"
#include "apps/recipes/fal.h"
#include "apps/run/training.h"
#include "core/error.h"

namespace longhand::app {
namespace {

const std::vector<BoxesModel> table2{
    {"Standard, L = 2", "standard-2", false, 2, 6.4, 1.00, .0543, .451, .0626, .588},
    {"Standard, L = 3", "standard-3", false, 3, 9.6, 1.46, .0316, .653, .0198, .848},
    {"Standard, L = 4", "standard-4", false, 4, 12.7, 1.90, .0129, .837, .0075, .943},
    {"Standard, L = 5", "standard-5", false, 5, 15.9, 2.37, .0102, .846, .0040, .970},
    {"ChaCAL, L = 2", "chacal-2", true, 2, 6.4, 1.36, .0234, .706, .0012, .991}};

/// GPT-2 as the paper has it, apart from its size.
const std::map<std::string, std::string> gpt2{
    {"model.order", "sequential"},  {"model.activation", "gelu_tanh"},
    {"model.positions", "learned"}, {"model.tied", "1"},
    {"model.start", "residual"},    {"training.beta2", "0.98"},
    {"training.decay", "0.01"},     {"training.schedule", "linear"}};

BoxesStudy small_study(Scale scale) {
  BoxesStudy study{.settings = gpt2, .heads = 4, .models = table2};
  auto& s = study.settings;
  s.insert({{"task.version", "advanced"},
            {"task.boxes", "4"},
            {"task.objects", "20"},
            {"task.operations", "15"},
            {"model.width", "64"},
            {"model.inner", "256"},
            {"training.set", "1000000"},
            {"training.rate", "1e-3"}});
  if (scale == Scale::smoke) {
    std::erase_if(study.models, [](const BoxesModel& model) { return model.layers != 2; });
    s.insert({{"training.steps", "400"},
              {"training.batch", "32"},
              {"training.warm_up", "100"},
              {"training.evaluate_every", "100"},
              {"training.evaluate_samples", "200"}});
  } else {
    s.insert({{"training.steps", "6000"},
              {"training.batch", "64"},
              {"training.warm_up", "300"},
              {"training.checkpoint_every", "500"},
              {"training.evaluate_every", "300"},
              {"training.evaluate_samples", "1000"}});
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

std::vector<BoxesStudy> boxes_studies(Scale scale) {
  if (scale != Scale::paper) return {small_study(scale)};
  return {paper_study(false), paper_study(true)};
}

Config boxes_config(const BoxesStudy& study, const BoxesModel& model, int run,
                    const RecipeOptions& options) {
  Config config("boxes");
  const std::string heads = std::to_string(study.heads);
  std::string layers = "softmax:" + heads;
  if (model.chacal) layers += ";chacal:" + heads;
  config.set("model.heads", layers);
  config.set("model.layers", std::to_string(model.layers));
  config.set("training.seed", std::to_string(options.seed + static_cast<std::uint64_t>(run)));
  for (const auto& [key, value] : study.settings) config.set(key, value);
  for (const auto& [key, value] : options.settings) config.set(key, value);
  return config;
}

std::filesystem::path boxes_folder(const BoxesStudy& study, const BoxesModel& model, int run,
                                   const std::filesystem::path& out) {
  std::string name = (study.advanced ? "advanced-" : "default-") + model.id;
  if (study.runs > 1) name += "-run-" + std::to_string(run + 1);
  return out / name;
}

bool train_boxes(const std::filesystem::path& path, const Config& config,
                 const RecipeOptions& options) {
  RunFolder folder = open_or_create(path, config);
  return train(folder, options.quiet).finished;
}

std::string boxes_curves(
    const BoxesStudy& study,
    const std::function<std::filesystem::path(const BoxesModel&, int run)>& folder_of) {
  html::LineChart chart{.x_label = "step", .y_label = "exact match, test", .series = {}};
  chart.y_low = 0;
  chart.y_high = 1;
  for (const BoxesModel& model : study.models) {
    std::map<double, std::vector<double>> shares;  // of the runs, by step
    for (int run = 0; run < study.runs; ++run) {
      for (const Json& line : RunFolder(folder_of(model, run)).metrics()) {
        if (line.contains("test/exact")) {
          shares[line.at("step").get<double>()].push_back(line.at("test/exact").get<double>());
        }
      }
    }
    html::Series series{.name = model.name, .points = {}, .marks = true};
    for (const auto& [step, values] : shares) {
      html::Point point{.x = step};
      for (const double value : values) point.y += value / static_cast<double>(values.size());
      if (study.runs > 1) {
        point.low = std::ranges::min(values);
        point.high = std::ranges::max(values);
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
