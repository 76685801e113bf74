#pragma once

#include <string>

#include "apps/run/config.h"
#include "nn/training/trainer.h"

namespace longhand::app {

/// Freezes the parameters that training.train excludes. If the configuration requires it, enables
/// recomputation of activations.
void set_up_training(const Config& config, nn::Decoder& model);

/// The optimizer with its groups of parameters.
struct ChosenOptimizer {
  nn::OptimizerOptions options;
  std::vector<nn::ParameterGroup> groups = {};
};
/// Returns the optimizer of a run. If it is Muon, AdamW updates the embedding, learned positions
/// and output layers of the model.
ChosenOptimizer optimizer_of(const TrainingSettings& settings, const nn::Decoder& model);

/// The options on which the results of a training depend.
nn::TrainerOptions trainer_options(const TrainingSettings& settings, const nn::Decoder& model);

/// Loads parameter values from a checkpoint. Parameters that LoRA or mixers added keep their
/// initial values if they are not in the checkpoint.
void begin_with(const std::filesystem::path& checkpoint, const nn::Decoder& model);

/// A line that describes the trained parameters: "trains 12 of 272 tensors, 884736 of 134515008
/// numbers: blocks.*.mixing.out.weight". Empty if all parameters are trained.
std::string learning_line(const nn::Parameters& parameters);

}  // namespace longhand::app
