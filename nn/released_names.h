#pragma once

#include <string>
#include <string_view>

namespace longhand::nn {

/// The name of a decoder's parameter in version 0.1, which used GPT-NeoX's names; unknown names are
/// returned unchanged. Checkpoints of that version are read with it and GPT-NeoX files are written
/// with it. It also names the random stream of a parameter's initial values, so a seed still gives
/// the same model.
std::string released_name(std::string_view name);

}  // namespace longhand::nn
