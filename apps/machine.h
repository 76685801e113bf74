#pragma once

#include <string>

namespace longhand::app {

/// The rest of the first line that starts with the key; empty if there is none.
std::string find_line(const std::string& file, const std::string& key);

/// Bytes that this process could use, including swap and within its container's limit, and how many
/// of them are free.
struct MachineMemory {
  double total = 0, available = 0;
};
MachineMemory machine_memory();

/// A description of the machine for reports: "AMD EPYC, 2 cores, avx512bf16".
std::string machine();

}  // namespace longhand::app
