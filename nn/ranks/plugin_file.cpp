#include "nn/ranks/plugin_file.h"

#include <cstdlib>
#include <filesystem>

namespace longhand::nn {
namespace fs = std::filesystem;

std::optional<std::string> find_plugin(const char* variable, const std::string& file) {
  if (const char* const named = std::getenv(variable)) return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  for (const char* folder : {".", "../lib/longhand"}) {
    const fs::path path = program / folder / file;
    if (fs::exists(path, error)) return fs::weakly_canonical(path).string();
  }
  return std::nullopt;
}

}  // namespace longhand::nn
