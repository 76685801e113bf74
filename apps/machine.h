#pragma once

#include <string>

namespace longhand::app {

/// The first line of a file that starts with the key, without it: "" where there is none.
std::string find_line(const std::string& file, const std::string& key);

/// Bytes that this process could have, with swap and under its container's limit, and how many of
/// them nobody uses.
struct MachineMemory {
  double total = 0, available = 0;
};
MachineMemory machine_memory();

/// The machine in words, for reports: "AMD EPYC, 2 cores, avx512bf16".
std::string machine();

}  // namespace longhand::app
