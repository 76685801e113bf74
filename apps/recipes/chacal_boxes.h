#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/chacal.h"

/// Shared by the recipes of ChaCAL's boxes experiment: GPT-2 models of 2 to 5 layers, and one with
/// a standard layer and a ChaCAL layer.
namespace longhand::app {

struct BoxesModel {
  std::string name, id;  // "Standard, L = 2", "standard-2"
  bool chacal = false;   // in the last layer
  int layers = 2;
  // Table 2 of the paper: parameters in millions, and training time relative to the first model.
  double size = 0, time = 0;
  double default_loss = 0, default_exact = 0, advanced_loss = 0, advanced_exact = 0;

  double loss(bool advanced) const { return advanced ? advanced_loss : default_loss; }
  double exact(bool advanced) const { return advanced ? advanced_exact : default_exact; }
};

/// Models on one version of the task.
struct BoxesStudy {
  bool advanced = true;
  Config config = recipe_config("boxes");  // shared by all models
  int heads = 8;
  std::int64_t runs = 1;  // per model, with consecutive seeds
  std::vector<BoxesModel> models = {};

  std::string version() const { return advanced ? "Advanced" : "Default"; }
};
/// The studies of a scale, the advanced version last.
std::vector<BoxesStudy> boxes_studies(const RecipeOptions& options);

/// The runs of a model, one per seed, and those of all models and studies.
std::vector<GridRun> boxes_runs(const BoxesStudy& study, const BoxesModel& model,
                                const RecipeOptions& options);
std::vector<GridRun> boxes_runs(const RecipeOptions& options);
/// Folders of a model's runs: of this recipe, or finished ones of another recipe of the boxes.
std::vector<std::filesystem::path> boxes_paths(const BoxesStudy& study, const BoxesModel& model,
                                               const RecipeOptions& options);
/// Recipes that share the runs.
std::span<const std::string_view> recipes_of_boxes();

/// Exact match during training, one curve per model, with the range of its runs if there are
/// several.
std::string boxes_curves(const BoxesStudy& study, const RecipeOptions& options);

}  // namespace longhand::app
