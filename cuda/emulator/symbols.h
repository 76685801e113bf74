#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace longhand::emulator {

/// A symbol of the running program.
struct Symbol {
  std::uintptr_t begin = 0;
  std::size_t size = 0;
  std::string name;  // mangled
};

/// The functions, and the writable variables that are static in a function: in kernels these are
/// their static shared memory. Sorted by address. Throws an Error if the program is stripped.
struct Symbols {
  std::vector<Symbol> functions, variables;
  std::uintptr_t moved = 0;  // an address in memory less that in the program's file
};
Symbols read_symbols();

/// Demangled, without namespaces of ours and parameters.
std::string readable_name(const std::string& mangled);

}  // namespace longhand::emulator
