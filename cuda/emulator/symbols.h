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

/// The program's functions, sorted by address, and the static thread_local variables of its
/// functions, sorted by their offset from thread_begin(). In a kernel, these variables are the
/// static shared memory.
struct Symbols {
  std::vector<Symbol> functions, variables;
  std::uintptr_t moved = 0;  // address of a function in memory minus its address in the file
  // Offset from thread_begin() of the variable longhand_known_of_thread (symbols.cpp).
  // thread_begin() subtracts this offset from the variable's address.
  std::uintptr_t known_offset = 0;
};
/// Reads the symbols of the running program. Throws an Error if the program is stripped.
Symbols read_symbols();

/// The address at which the program's thread_local variables begin in the calling thread.
std::uintptr_t thread_begin(const Symbols& symbols);

/// The demangled name, without longhand's namespaces and without parameters.
std::string readable_name(const std::string& mangled);

}  // namespace longhand::emulator
