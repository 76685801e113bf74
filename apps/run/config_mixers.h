#pragma once

#include <vector>

#include "apps/run/config.h"

namespace longhand::app {

/// The mixers that a configuration describes, one list for all layers or one for each.
std::vector<nn::MixerList> mixers_of(const Config& config);
/// True if two configurations describe the same mixers, however their options are written.
bool same_mixers(const Config& a, const Config& b);

}  // namespace longhand::app
