#pragma once

#include <string>
#include <string_view>

namespace longhand::nn {

/// The name that a decoder's parameter had in version 0.1, which used GPT-NeoX's names. Parameters
/// that did not exist in version 0.1 keep their name. The released name is used to read checkpoints
/// of that version and to write GPT-NeoX files. It also selects the random stream of the
/// parameter's initial values, so a seed gives the same model as in version 0.1.
std::string released_name(std::string_view name);

}  // namespace longhand::nn
