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

/// The program's functions, and its writable variables that are static in a function, each sorted
/// by address. The static variables of a kernel are its static shared memory.
struct Symbols {
  std::vector<Symbol> functions, variables;
  std::uintptr_t moved = 0;  // a symbol's address in memory minus its address in the program's file
};
/// Throws an Error if the program is stripped.
Symbols read_symbols();

/// The demangled name, without longhand's namespaces and without parameters.
std::string readable_name(const std::string& mangled);

}  // namespace longhand::emulator
