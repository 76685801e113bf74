#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/text_file.h"

namespace longhand {

/// Reads a table of comma-separated values (RFC 4180) row by row. If the file's name ends in .tsv,
/// cells are separated by tabs. A cell in double quotes may contain separators, line breaks and
/// doubled quotes. The first row contains the names of the columns.
class TableFile {
 public:
  static constexpr std::size_t longest_row = std::size_t{16} << 20;  // bytes

  explicit TableFile(const std::filesystem::path& path);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Index of the column with this name. Throws an Error if there is none, or more than one.
  std::size_t column(const std::string& name) const;
  /// The next row, with as many cells as there are columns. Returns no value at the end of the
  /// table. Empty lines are skipped. Throws an Error that names the file and the line if a row is
  /// broken.
  std::optional<std::vector<std::string>> next();
  /// The place of the last row that was read, for messages: the file's name and the number of the
  /// row's first line, such as "table.csv:7".
  std::string place() const;

 private:
  std::optional<std::vector<std::string>> read_row();

  std::string name_;
  char separator_;
  LineReader lines_;
  std::int64_t line_ = 0;
  std::vector<std::string> columns_;
};

}  // namespace longhand
