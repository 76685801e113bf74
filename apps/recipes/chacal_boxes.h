#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/recipes/recipe.h"
#include "apps/run/config.h"
#include "apps/run/run_folder.h"

/// What the recipes of ChaCAL's boxes experiment share: GPT-2 models of 2 to 5 layers, and one of a
/// standard layer and a ChaCAL layer.
namespace longhand::app {

struct BoxesModel {
  std::string name;  // "Standard, L = 2"
  std::string id;    // of its folder
  bool chacal = false;
  int layers = 2;
  // Table 2.
  double size = 0, time = 0;  // parameters in millions; of the first model's training time
  double default_loss = 0, default_exact = 0, advanced_loss = 0, advanced_exact = 0;
};

/// All models on one version of the task.
struct BoxesStudy {
  bool advanced = true;
  std::map<std::string, std::string> settings;  // of all models
  int heads = 8;
  int runs = 1;  // of each model, with seeds one after another
  std::vector<BoxesModel> models;

  std::string version() const { return advanced ? "Advanced" : "Default"; }
};
/// The versions of a scale.
std::vector<BoxesStudy> boxes_studies(Scale scale);

Config boxes_config(const BoxesStudy& study, const BoxesModel& model, int run,
                    const RecipeOptions& options);
/// The folder of a run under a recipe's.
std::filesystem::path boxes_folder(const BoxesStudy& study, const BoxesModel& model, int run,
                                   const std::filesystem::path& out);
/// Trains the run in that folder or goes on with it; false: stopped.
bool train_boxes(const std::filesystem::path& path, const Config& config,
                 const RecipeOptions& options);

/// Exact match during training, a curve for each model: the mean of its runs and, where there are
/// several, their range as a band. folder_of(model, run) is where a run is.
std::string boxes_curves(
    const BoxesStudy& study,
    const std::function<std::filesystem::path(const BoxesModel&, int run)>& folder_of);

}  // namespace longhand::app
