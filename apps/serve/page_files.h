#pragma once

#include <span>
#include <string_view>

namespace longhand::app {

/// A file of apps/serve/page/, embedded in the program. CMake generates the list of these files.
struct PageFile {
  std::string_view path, type, text;
};
std::span<const PageFile> page_files();

}  // namespace longhand::app
