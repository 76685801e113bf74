#pragma once

#include <optional>
#include <string>

namespace longhand::nn {

/// A plug-in's file, where there is one: what the environment's variable names, or the file next to
/// the program or in ../lib/longhand from there.
std::optional<std::string> find_plugin(const char* variable, const std::string& file);

}  // namespace longhand::nn
