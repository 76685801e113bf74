#include "apps/machine.h"

#include <fstream>

#include "core/cpu/isa.h"
#include "core/error.h"
#include "core/parallel.h"

namespace longhand::app {

std::string find_line(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t start = line.find_first_not_of(" \t:", key.size());
    if (start != std::string::npos) return line.substr(start);
  }
  return {};
}

std::string machine() {
  std::string processor = find_line("/proc/cpuinfo", "model name");
  if (processor.empty()) processor = "unknown processor";
  return text(processor, ", ", ThreadPool(0).threads(), " cores, ",
              cpu::name_of(cpu::choose_isa()));
}

}  // namespace longhand::app
