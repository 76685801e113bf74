#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace longhand::app::book {

struct BookOptions {
  std::filesystem::path source;  // a checkout of this repository: its documents and code
  std::filesystem::path out;
  bool checks = true;      // show what this machine finds of every operation
  std::uint64_t seed = 1;  // of the numbers it is checked with
  /// Told as each page is written.
  std::function<void(std::string_view page)> written = [](std::string_view) {};
};

struct BookFacts {
  std::int64_t pages = 0, formulas = 0, sources = 0, operations = 0;  // those checked
  double seconds = 0;                                                 // of checks and timings
};

/// Writes the site. The folder must be new, empty or a book written before.
BookFacts write_book(const BookOptions& options);

}  // namespace longhand::app::book
