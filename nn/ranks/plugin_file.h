#pragma once

#include <optional>
#include <string>

namespace longhand::nn {

/// Path of a plug-in, if the plug-in exists: the value of the environment variable, or `file` in
/// the program's folder or in ../lib/longhand relative to that folder.
std::optional<std::string> find_plugin(const char* variable, const std::string& file);

}  // namespace longhand::nn
