#pragma once

#include <optional>
#include <string>

namespace longhand::nn {

/// Path of a plug-in, if it exists: the value of the environment variable, or the file next to the
/// program or in ../lib/longhand relative to it.
std::optional<std::string> find_plugin(const char* variable, const std::string& file);

}  // namespace longhand::nn
