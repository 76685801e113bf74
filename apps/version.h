#pragma once

#include <string_view>

/// The version and origin of this program. They are in version.cpp, which the build generates
/// (cmake/version.cmake).
namespace longhand::app {

extern const std::string_view version;  // such as "0.2.0"
// The 40 hexadecimal digits of the commit, with the suffix "+changes" if the working tree had
// changes. "unknown" if the source is neither a git checkout nor a git archive.
extern const std::string_view commit;
extern const std::string_view compiler;  // such as "GNU 12.2.0"
extern const std::string_view build;     // such as "Release, static"

}  // namespace longhand::app
