#pragma once

#include <string>

namespace longhand::app {

/// Finds the first line of `file` that starts with `key` and returns the rest of this line. Empty
/// if there is no such line.
std::string find_line(const std::string& file, const std::string& key);

/// Memory that this process may use, in bytes: in total, and what is still available. Swap is
/// included, and the limit of a container is taken into account.
struct MachineMemory {
  double total = 0, available = 0;
};
MachineMemory machine_memory();

/// A description of the machine for reports: "AMD EPYC, 2 cores, avx512bf16".
std::string machine();

}  // namespace longhand::app
