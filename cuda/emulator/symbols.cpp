#include "cuda/emulator/symbols.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <regex>
#include <span>

#include "core/error.h"
#include "core/mapped_file.h"

// Two variables whose positions in the program are known from its symbol table. From the address
// of longhand_known_symbol in memory, read_symbols() computes the addresses of all functions. From
// the address of longhand_known_of_thread, thread_begin() computes where the thread_local variables
// of the calling thread begin.
extern "C" {
int longhand_known_symbol = 1;
thread_local int longhand_known_of_thread = 1;
}

namespace longhand::emulator {
namespace {

template <class T>
T at(std::span<const std::byte> file, std::size_t offset) {
  LONGHAND_CHECK(offset + sizeof(T) <= file.size(),
                 "emulator: the file of the program is truncated");
  T value;
  std::memcpy(&value, file.data() + offset, sizeof value);
  return value;
}

}  // namespace

Symbols read_symbols() {
  const MappedFile program("/proc/self/exe");
  const std::span<const std::byte> file = program.bytes();
  const auto header = at<Elf64_Ehdr>(file, 0);
  std::vector<Elf64_Shdr> sections;
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    sections.push_back(at<Elf64_Shdr>(file, header.e_shoff + i * header.e_shentsize));
  }
  const auto table = std::ranges::find(sections, Elf64_Word{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
  LONGHAND_CHECK(table != sections.end(), "emulator: the program has no symbol table");
  const auto name_of = [&](const Elf64_Sym& symbol) {
    const std::size_t offset = sections[table->sh_link].sh_offset + symbol.st_name;
    LONGHAND_CHECK(
        offset < file.size(),
        "emulator: the program's file is damaged: the name of a symbol lies after its end");
    const auto* const name = reinterpret_cast<const char*>(file.data()) + offset;
    return std::string(name, ::strnlen(name, file.size() - offset));
  };
  Symbols all;
  for (std::size_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); ++i) {
    const auto symbol = at<Elf64_Sym>(file, table->sh_offset + i * sizeof(Elf64_Sym));
    const int type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= sections.size()) continue;
    Symbol found{symbol.st_value, symbol.st_size, name_of(symbol)};
    if (found.name == "longhand_known_symbol") {
      all.moved = reinterpret_cast<std::uintptr_t>(&longhand_known_symbol) - symbol.st_value;
    }
    if (found.name == "longhand_known_of_thread") all.known_offset = symbol.st_value;
    if (type == STT_FUNC) all.functions.push_back(found);
    if (type == STT_TLS && found.name.starts_with("_ZZ")) all.variables.push_back(found);
  }
  for (Symbol& function : all.functions) function.begin += all.moved;
  std::ranges::sort(all.functions, {}, &Symbol::begin);
  std::ranges::sort(all.variables, {}, &Symbol::begin);
  return all;
}

std::uintptr_t thread_begin(const Symbols& symbols) {
  return reinterpret_cast<std::uintptr_t>(&longhand_known_of_thread) - symbols.known_offset;
}

std::string readable_name(const std::string& mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
  if (status != 0) return mangled;
  std::string name = readable.get();
  static const std::regex ours("longhand::|cuda_emulated::|walks::|\\(anonymous namespace\\)::");
  name = std::regex_replace(name, ours, "");
  static const std::regex parameters("^void |\\((?!.*>).*$");
  return std::regex_replace(name, parameters, "");
}

}  // namespace longhand::emulator
