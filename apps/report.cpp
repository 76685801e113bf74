#include "apps/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string_view>

#include "apps/terminal.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand::app {
namespace {

std::string cell(const Report::Column& column, const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return printable(value.string());
  if (value.is_number() && !value.is_integer()) {
    char buffer[64];
    const char* format = column.format.empty() ? "%.4g" : column.format.c_str();
    std::snprintf(buffer, sizeof buffer, format, value.number());
    return buffer;
  }
  return value.dump();
}

struct TableCell {
  std::string text;
  bool is_number = false;  // true: the text is never divided between lines
};

/// A column of a printed table: the title, then the cells of all rows. Columns with numbers are
/// aligned right.
struct TableColumn {
  std::vector<TableCell> cells;
  bool has_numbers = false;
  std::size_t width = 0;
};

/// Where lines of a table cell may end. `words`: after a word if the text has spaces, otherwise
/// after '/', ',', ';' or a hyphen. `pieces`: after any of these characters, '_', ':' or '='.
enum class Breaks { words, pieces };

/// The parts of a table cell's text that are never divided between lines. The minus sign of 1e-5 is
/// not a hyphen.
std::vector<std::string_view> parts_of(std::string_view text, Breaks breaks) {
  const std::string_view ends = breaks == Breaks::pieces      ? " /,;-_:="
                                : text.find(' ') == text.npos ? "/,;-"
                                                              : " ";
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_last = i + 1 == text.size();
    const bool has_sign = i == 0 || (i > 1 && text[i - 1] == 'e' && is_digit(i - 2));
    const bool is_minus = text[i] == '-' && has_sign && !is_last && is_digit(i + 1);
    if (!is_last && (ends.find(text[i]) == ends.npos || is_minus)) continue;
    parts.push_back(text.substr(begin, i + 1 - begin));
    begin = i + 1;
  }
  return parts;
}

std::string_view without_space(std::string_view part) {
  return part.ends_with(' ') ? part.substr(0, part.size() - 1) : part;
}

/// The minimum width of a column if even pieces of words are divided.
constexpr std::size_t shortest_line = 6;

/// Width of the longest part of a cell.
std::size_t least_width(const TableCell& cell, Breaks breaks) {
  if (cell.is_number) return count_code_points(cell.text);
  std::size_t least = 1;
  for (const std::string_view part : parts_of(cell.text, breaks)) {
    least = std::max(least, count_code_points(without_space(part)));
  }
  return least;
}

/// Wraps a text into lines of at most `width` characters. Lines end after words if all words fit,
/// otherwise after pieces. A piece that is longer than `width` is divided between characters.
std::vector<std::string> wrapped(const TableCell& cell, std::size_t width) {
  const std::string_view text = cell.text;
  if (cell.is_number || count_code_points(text) <= width) return {cell.text};
  const Breaks breaks = least_width(cell, Breaks::words) <= width ? Breaks::words : Breaks::pieces;
  std::vector<std::string> lines{""};
  for (std::string_view part : parts_of(text, breaks)) {
    const bool fits =
        count_code_points(lines.back()) + count_code_points(without_space(part)) <= width;
    if (!fits && !lines.back().empty()) lines.emplace_back();
    while (count_code_points(without_space(part)) > width) {
      const std::string_view first = first_code_points(part, width);
      lines.back() = first;
      lines.emplace_back();
      part.remove_prefix(first.size());
    }
    lines.back() += part;
  }
  for (std::string& line : lines) line = without_space(line);
  return lines;
}

constexpr std::size_t usual_gap = 2;  // spaces between columns

/// Narrows the widest columns until `total`, the width of the table, is at most `columns`, or until
/// no column can be narrower. Parts of text that are longer than `longest` characters are divided.
void narrow(std::vector<TableColumn>& table, Breaks breaks, std::size_t longest,
            std::size_t columns, std::size_t& total) {
  std::vector<std::size_t> least;
  for (const TableColumn& column : table) {
    least.push_back(1);
    for (const TableCell& cell : column.cells) {
      const std::size_t part = least_width(cell, breaks);
      least.back() = std::max(least.back(), cell.is_number ? part : std::min(part, longest));
    }
  }
  for (; total > columns; --total) {
    TableColumn* widest = nullptr;
    for (std::size_t c = 0; c < table.size(); ++c) {
      if (table[c].width > least[c] && (!widest || table[c].width > widest->width))
        widest = &table[c];
    }
    if (!widest) return;
    --widest->width;
  }
}

/// Narrows a table until each line has at most `columns` characters, if this is possible. If
/// wrapping between words is not enough, one space separates the columns. If this is not enough
/// either, words are divided into pieces, and finally pieces between characters. Returns the number
/// of spaces between columns.
std::size_t fit(std::vector<TableColumn>& table, std::size_t columns) {
  std::size_t total = usual_gap * (table.size() - 1);
  for (const TableColumn& column : table) total += column.width;
  narrow(table, Breaks::words, std::string::npos, columns, total);
  if (total <= columns) return usual_gap;
  total -= (usual_gap - 1) * (table.size() - 1);
  narrow(table, Breaks::pieces, std::string::npos, columns, total);
  narrow(table, Breaks::pieces, shortest_line, columns, total);
  return 1;
}

}  // namespace

void Report::print(std::ostream& out, bool as_json) const {
  if (!as_json) return print_table(out, table_columns(STDOUT_FILENO));
  Json all = head_;
  all["rows"] = rows_;
  out << all << '\n';
}

void Report::print_table(std::ostream& out, std::size_t columns) const {
  std::vector<TableColumn> table;
  for (const Column& column : columns_) {
    TableColumn shown{.cells = {{column.title}}};
    for (const Json& row : rows_) {
      const Json* const value = row.find(column.key);
      const bool is_number = value && value->is_number();
      shown.has_numbers = shown.has_numbers || is_number;
      shown.cells.push_back(
          {column.text ? printable(column.text(row)) : cell(column, value ? *value : Json()),
           is_number});
    }
    for (const TableCell& shown_cell : shown.cells)
      shown.width = std::max(shown.width, count_code_points(shown_cell.text));
    table.push_back(std::move(shown));
  }
  const std::size_t gap_size = columns > 0 ? fit(table, columns) : usual_gap;
  for (std::size_t row = 0; row <= rows_.size(); ++row) {
    std::vector<std::vector<std::string>> cells;
    std::size_t lines = 1;
    for (const TableColumn& column : table) {
      cells.push_back(wrapped(column.cells[row], column.width));
      lines = std::max(lines, cells.back().size());
    }
    for (std::size_t i = 0; i < lines; ++i) {
      std::string line;
      for (std::size_t c = 0; c < table.size(); ++c) {
        // Text is aligned left and numbers right.
        const std::string text = i < cells[c].size() ? cells[c][i] : "";
        const std::string gap(table[c].width - std::min(table[c].width, count_code_points(text)),
                              ' ');
        line += std::string(c == 0 ? 0 : gap_size, ' ') +
                (table[c].has_numbers ? gap + text : text + gap);
      }
      line.resize(line.find_last_not_of(' ') + 1);  // no trailing spaces
      out << line << '\n';
    }
  }
}

}  // namespace longhand::app
