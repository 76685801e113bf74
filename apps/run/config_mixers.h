#pragma once

#include <vector>

#include "apps/run/config.h"

namespace longhand::app {

/// The mixers that a configuration describes: one list for all layers, or one list per layer.
std::vector<nn::MixerList> mixers_of(const Config& config);
/// True if two configurations describe the same mixers, even if their options are written
/// differently.
bool same_mixers(const Config& a, const Config& b);

}  // namespace longhand::app
