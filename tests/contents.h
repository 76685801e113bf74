#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace longhand {

/// Returns the bytes of a file, or an empty string if it cannot be read.
inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace longhand
