#pragma once

#include <optional>
#include <string>

namespace longhand::nn {

/// Path of a plug-in: the value of the environment variable `variable` or, if this is not set,
/// `file` in the program's folder or in ../lib/longhand relative to that folder. No value if there
/// is no such file. Throws an Error if the variable is set and does not name a file.
std::optional<std::string> find_plugin(const char* variable, const std::string& file);

}  // namespace longhand::nn
