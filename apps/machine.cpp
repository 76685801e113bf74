#include "apps/machine.h"

#include <algorithm>
#include <charconv>
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

MachineMemory machine_memory() {
  const auto number = [](const std::string& digits) {
    double value = -1;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  // Value of a key of /proc/meminfo in bytes; 0 if the key is missing.
  const auto told = [&](const char* key) {
    return 1024 * std::max(0.0, number(find_line("/proc/meminfo", key)));
  };
  MachineMemory memory{.total = told("MemTotal") + told("SwapTotal"),
                       .available = told("MemAvailable") + told("SwapFree")};
  const double limit = number(find_line("/sys/fs/cgroup/memory.max", ""));
  if (limit >= 0) {
    const double used = std::max(0.0, number(find_line("/sys/fs/cgroup/memory.current", "")));
    memory.total = std::min(memory.total, limit);
    memory.available = std::min(memory.available, std::max(0.0, limit - used));
  }
  LONGHAND_CHECK(memory.total > 0, "/proc/meminfo: expected a line \"MemTotal\", got none");
  return memory;
}

std::string machine() {
  std::string processor = find_line("/proc/cpuinfo", "model name");
  if (processor.empty()) processor = "unknown processor";
  return text(processor, ", ", usable_cores(), " cores, ", cpu::name_of(cpu::choose_isa()));
}

}  // namespace longhand::app
