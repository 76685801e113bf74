#pragma once

#include <string_view>

/// What this program was built from; version.cpp is written by the build (cmake/version.cmake).
namespace longhand::app {

extern const std::string_view version;   // "0.2.0"
extern const std::string_view commit;    // 40 digits, "+changes" behind them if the tree had any;
                                         // "unknown" where neither git nor an archive says it
extern const std::string_view compiler;  // "GNU 12.2.0"
extern const std::string_view build;     // "Release, static"

}  // namespace longhand::app
