#pragma once

#include <string>
#include <string_view>

namespace longhand::nn {

/// The name that a parameter of a decoder had in version 0.1, which used GPT-NeoX's; other names
/// are their own. Checkpoints of that version are read by it, it names the stream of a parameter's
/// initial values, so that a seed goes on giving the same model, and GPT-NeoX files are written
/// with it.
std::string released_name(std::string_view name);

}  // namespace longhand::nn
