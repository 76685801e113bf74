#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/text_file.h"

namespace longhand::tasks {

/// Reads a table with comma-separated values (RFC 4180), row by row. A cell may be in double
/// quotes; it may then contain commas, line breaks and doubled quotes. If the name ends in .tsv,
/// cells are separated by tabs. The first row contains the names of the columns.
class TableFile {
 public:
  explicit TableFile(const std::filesystem::path& path);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Index of a column. Throws an Error if there is none of this name.
  std::size_t column(const std::string& name) const;
  /// The next row, with as many cells as columns; no value at the end. Empty lines are skipped.
  /// Throws an Error that names file and line if a row is broken.
  std::optional<std::vector<std::string>> next();
  /// File and number of the row's first line for messages: "table.csv:7".
  std::string place() const;

 private:
  std::optional<std::vector<std::string>> read_row();

  std::string name_;
  char separator_;
  LineReader lines_;
  std::int64_t line_ = 0;
  std::vector<std::string> columns_;
};

}  // namespace longhand::tasks
