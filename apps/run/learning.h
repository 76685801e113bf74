#pragma once

#include <string>

#include "apps/run/config.h"

namespace longhand::app {

/// Freezes what training.train leaves out, and has the model recompute where that is wanted.
void set_up_training(const Config& config, nn::Decoder& model);

/// Gives the model the values of a checkpoint. What LoRA and mixers add begins anew where that
/// lacks it.
void begin_with(const std::filesystem::path& checkpoint, const nn::Decoder& model);

/// "trains 12 of 272 tensors, 884736 of 134515008 numbers: blocks.*.mixing.out.weight"; empty where
/// all of it learns.
std::string learning_line(const nn::Parameters& parameters);

}  // namespace longhand::app
