#pragma once

#include <string_view>

/// The origin of this program; the build writes version.cpp (cmake/version.cmake).
namespace longhand::app {

extern const std::string_view version;  // "0.2.0"
// 40 digits, followed by "+changes" if the tree had any; "unknown" if neither git nor an archive
// provides it
extern const std::string_view commit;
extern const std::string_view compiler;  // "GNU 12.2.0"
extern const std::string_view build;     // "Release, static"

}  // namespace longhand::app
