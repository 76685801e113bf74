#include "nn/ranks/plugin_file.h"

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace fs = std::filesystem;

std::optional<std::string> find_plugin(const char* variable, const std::string& file) {
  std::error_code error;
  if (const char* const named = std::getenv(variable)) {
    LONGHAND_CHECK(fs::is_regular_file(named, error), variable, ": expected a file, got ",
                   quote(named), fs::exists(named, error) ? "" : ", which does not exist");
    // The path is made absolute, because dlopen() searches only the system's library folders for a
    // path without a slash.
    return fs::absolute(named).string();
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  for (const char* folder : {".", "../lib/longhand"}) {
    const fs::path path = program / folder / file;
    if (fs::exists(path, error)) return fs::weakly_canonical(path).string();
  }
  return std::nullopt;
}

}  // namespace longhand::nn
