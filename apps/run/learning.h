#pragma once

#include <string>

#include "apps/run/config.h"

namespace longhand::app {

/// Freezes the parameters that training.train excludes, and enables recomputation if configured.
void set_up_training(const Config& config, nn::Decoder& model);

/// Loads the values of a checkpoint. Parameters that LoRA and mixers add keep their initial values
/// if the checkpoint lacks them.
void begin_with(const std::filesystem::path& checkpoint, const nn::Decoder& model);

/// "trains 12 of 272 tensors, 884736 of 134515008 numbers: blocks.*.mixing.out.weight"; empty if
/// everything is trained.
std::string learning_line(const nn::Parameters& parameters);

}  // namespace longhand::app
