#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/chacal.h"

/// Functions shared by the recipes of ChaCAL's boxes experiment: standard GPT-2 models with 2 to 5
/// layers, and a model with one standard layer and one ChaCAL layer.
namespace longhand::app {

struct BoxesModel {
  std::string name, id;  // such as "Standard, L = 2" and "standard-2"
  bool chacal = false;   // the last layer has ChaCAL heads
  int layers = 2;
  // Figures in the paper's Table 2: parameters in millions, training time relative to the first
  // model, and results.
  double size = 0, time = 0;
  double default_loss = 0, default_exact = 0, advanced_loss = 0, advanced_exact = 0;

  double loss(bool advanced) const { return advanced ? advanced_loss : default_loss; }
  double exact(bool advanced) const { return advanced ? advanced_exact : default_exact; }
};

/// The models that are trained on one version of the task.
struct BoxesStudy {
  bool advanced = true;
  Config config = recipe_config("boxes");  // configuration shared by all models
  int heads = 8;
  std::int64_t runs = 1;  // runs per model, with consecutive seeds
  std::vector<BoxesModel> models = {};

  std::string version() const { return advanced ? "Advanced" : "Default"; }
};
/// The studies of a scale. The last study uses the advanced version of the task.
std::vector<BoxesStudy> boxes_studies(const RecipeOptions& options);

/// The runs of one model for all seeds, and the runs of all models and studies.
std::vector<GridRun> boxes_runs(const BoxesStudy& study, const BoxesModel& model,
                                const RecipeOptions& options);
std::vector<GridRun> boxes_runs(const RecipeOptions& options);
/// The folders of a model's runs. A run that another boxes recipe has finished is reused.
std::vector<std::filesystem::path> boxes_paths(const BoxesStudy& study, const BoxesModel& model,
                                               const RecipeOptions& options);
/// Names of the boxes recipes, which reuse each other's finished runs.
std::span<const std::string_view> recipes_of_boxes();

/// A chart of exact match during training, with one curve per model. If a model has several runs,
/// their range is shown.
std::string boxes_curves(const BoxesStudy& study, const RecipeOptions& options);

}  // namespace longhand::app
