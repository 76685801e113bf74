#pragma once

#include <vector>

#include "apps/run/config.h"

namespace longhand::app {

/// The mixers that a configuration describes. There is one list for all layers, or one list per
/// layer.
std::vector<nn::MixerList> mixers_of(const Config& config);
/// True if two configurations describe the same mixers, even if the options are written
/// differently.
bool same_mixers(const Config& a, const Config& b);
/// True if a setting means the same in two configurations. Its values may be written differently,
/// such as 1e-5 and 1e-05, or softmax:4 and softmax:4x16. False if only one of the configurations
/// has the setting.
bool same_setting(const Config& a, const Config& b, std::string_view key);

}  // namespace longhand::app
