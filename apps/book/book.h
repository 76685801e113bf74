#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

namespace longhand::app::book {

struct BookOptions {
  std::filesystem::path source;  // a checkout of this repository, with its documents and code
  std::filesystem::path out;
  /// The file longhand.wasm.js, which scripts/wasm.sh builds. It contains the WebAssembly module
  /// that the book's live pages run in the browser. Empty: the live pages describe how to build it.
  std::filesystem::path module = {};
  bool checks = true;      // check every operation on this machine and show the results
  std::uint64_t seed = 1;  // seed of the numbers used for checks
  /// Called after each page is written.
  std::function<void(std::string_view page)> written = [](std::string_view) {};
  /// Called before each step of the work, with a line that tells the user what is being done.
  std::function<void(std::string_view line)> doing = [](std::string_view) {};
};

struct BookFacts {
  // Numbers of written pages, of formulas in them, of listed source files, and of checked
  // operations.
  std::int64_t pages = 0, formulas = 0, sources = 0, operations = 0;
  double seconds = 0;  // duration of checks and timings
};

/// Writes the pages of the book to the folder options.out. The folder must be new or empty, or
/// contain an older version of the book.
BookFacts write_book(const BookOptions& options);

}  // namespace longhand::app::book
