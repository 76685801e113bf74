#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/chacal.h"

/// Functions shared by the recipes of the boxes experiment in the ChaCAL paper, in which models
/// track the contents of boxes. Standard GPT-2 models with 2 to 5 layers are compared with a model
/// of one standard layer and one ChaCAL layer.
namespace longhand::app {

struct BoxesModel {
  std::string name, id;  // such as "Standard, L = 2" and "standard-2"
  bool chacal = false;   // true: the last layer has ChaCAL heads
  int layers = 2;
  // In the paper's Table 2: parameters in millions, and training time relative to the first model.
  double size = 0, time = 0;
  // In the paper's Table 2: loss and exact match on the task's version `default` and on its version
  // `advanced`.
  double default_loss = 0, default_exact = 0, advanced_loss = 0, advanced_exact = 0;

  double loss(bool advanced) const { return advanced ? advanced_loss : default_loss; }
  double exact(bool advanced) const { return advanced ? advanced_exact : default_exact; }
};

/// The models and settings of the runs on one version of the task, default or advanced.
struct BoxesStudy {
  bool advanced = true;
  Config config = recipe_config("boxes");  // configuration shared by all models
  int heads = 8;
  std::int64_t runs = 1;  // runs per model, with consecutive seeds
  std::vector<BoxesModel> models = {};

  std::string version() const { return advanced ? "Advanced" : "Default"; }
};
/// The studies of a scale. Each study covers one version of the task, the last one the advanced
/// version.
std::vector<BoxesStudy> boxes_studies(const RecipeOptions& options);

/// The runs of one model of a study for all seeds.
std::vector<GridRun> boxes_runs(const BoxesStudy& study, const BoxesModel& model,
                                const RecipeOptions& options);
/// The runs of all models of all studies.
std::vector<GridRun> boxes_runs(const RecipeOptions& options);
/// The folders of a model's runs. If the run of another boxes recipe has the same settings and is
/// finished, the folder of that run is returned.
std::vector<std::filesystem::path> boxes_paths(const BoxesStudy& study, const BoxesModel& model,
                                               const RecipeOptions& options);
/// Names of the boxes recipes, which reuse each other's finished runs.
std::span<const std::string_view> recipes_of_boxes();

/// A chart of exact match during training, with one curve per model. If a model has several runs,
/// their range is shown.
std::string boxes_curves(const BoxesStudy& study, const RecipeOptions& options);

}  // namespace longhand::app
