#include "core/table_file.h"

#include <algorithm>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand {

TableFile::TableFile(const std::filesystem::path& path)
    : name_(path.string()),
      separator_(path.extension() == ".tsv" ? '\t' : ','),
      lines_(path, longest_row) {
  auto names = read_row();
  LONGHAND_CHECK(names, name_, ": expected a first line with the names of the columns, got none");
  columns_ = std::move(*names);
}

std::string TableFile::place() const { return text(name_, ':', line_); }

std::size_t TableFile::column(const std::string& name) const {
  const auto found = std::ranges::find(columns_, name);
  constexpr std::size_t shown = 10;  // maximum number of column names in the error message
  std::string known;
  for (std::size_t i = 0; i < std::min(shown, columns_.size()); ++i) {
    known += (known.empty() ? "" : ", ") + quote(columns_[i]);
  }
  if (columns_.size() > shown) known += text(" and ", columns_.size() - shown, " more");
  LONGHAND_CHECK(found != columns_.end(), name_, ": expected a column named ", quote(name),
                 ", got the columns ", known);
  LONGHAND_CHECK(std::ranges::count(columns_, name) == 1, name_, ": expected one column named ",
                 quote(name), ", got several");
  return static_cast<std::size_t>(found - columns_.begin());
}

std::optional<std::vector<std::string>> TableFile::next() {
  auto row = read_row();
  LONGHAND_CHECK(!row || row->size() == columns_.size(), place(), ": expected ", columns_.size(),
                 " cells, as in the first line, got ", row ? row->size() : 0);
  return row;
}

std::optional<std::vector<std::string>> TableFile::read_row() {
  const auto read_line = [&]() -> std::optional<std::string> {
    const auto line = lines_.next();
    if (!line) return std::nullopt;
    return std::string(line->ends_with('\r') ? line->substr(0, line->size() - 1) : *line);
  };
  std::optional<std::string> line = read_line();
  while (line && line->empty()) line = read_line();
  if (!line) return std::nullopt;
  // Some programs write a byte order mark at the beginning of a file.
  constexpr std::string_view mark = "\xef\xbb\xbf";
  if (line_ == 0 && line->starts_with(mark)) line->erase(0, mark.size());
  line_ = lines_.number();
  std::vector<std::string> cells(1);
  std::size_t bytes = 0;
  for (bool is_quoted = false; line; line = read_line()) {
    LONGHAND_CHECK(find_broken_utf8(*line) == std::string::npos, name_, ':', lines_.number(),
                   ": expected UTF-8, got an invalid byte at position ",
                   find_broken_utf8(*line) + 1);
    bytes += line->size() + 1;
    LONGHAND_CHECK(bytes <= longest_row, place(), ": expected a row of at most ", longest_row,
                   " bytes; a quote may be missing");
    for (std::size_t i = 0; i < line->size(); ++i) {
      const char c = (*line)[i];
      if (is_quoted && c == '"' && i + 1 < line->size() && (*line)[i + 1] == '"') {
        cells.back() += '"';
        ++i;
      } else if (is_quoted && c == '"') {
        is_quoted = false;
        LONGHAND_CHECK(i + 1 == line->size() || (*line)[i + 1] == separator_, place(),
                       ": expected the end of the cell after a quote, got ",
                       quote(line->substr(i + 1, 12)));
      } else if (!is_quoted && c == '"' && cells.back().empty()) {
        is_quoted = true;
      } else if (!is_quoted && c == separator_) {
        cells.emplace_back();
      } else {
        cells.back() += c;
      }
    }
    if (!is_quoted) return cells;
    cells.back() += '\n';
  }
  fail(place(), ": expected a closing quote, got the end of the file");
}

}  // namespace longhand
