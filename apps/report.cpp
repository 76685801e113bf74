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

/// A column of a printed table: the title, then the cells of all rows.
struct TableColumn {
  std::vector<std::string> cells;
  bool is_number = false;
  std::size_t width = 0;
};

/// The parts of a table cell's text that are never divided between lines. If the text has spaces,
/// its parts are words. Otherwise they are the pieces that end with '/', ',', ';' or a hyphen; the
/// minus sign of 1e-5 is not a hyphen.
std::vector<std::string_view> parts_of(std::string_view text) {
  const std::string_view ends = text.find(' ') == text.npos ? "/,;-" : " ";
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_last = i + 1 == text.size();
    const bool is_minus = text[i] == '-' && !is_last && text[i + 1] >= '0' && text[i + 1] <= '9';
    if (!is_last && (ends.find(text[i]) == ends.npos || is_minus)) continue;
    parts.push_back(text.substr(begin, i + 1 - begin));
    begin = i + 1;
  }
  return parts;
}

std::string_view without_space(std::string_view part) {
  return part.ends_with(' ') ? part.substr(0, part.size() - 1) : part;
}

/// Wraps a text into lines of at most `width` characters. Lines break only between the parts that
/// parts_of() returns. A part that is longer than `width` gets a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  if (count_code_points(text) <= width) return {std::string(text)};
  std::vector<std::string> lines{""};
  for (const std::string_view part : parts_of(text)) {
    const bool fits =
        count_code_points(lines.back()) + count_code_points(without_space(part)) <= width;
    if (!fits && !lines.back().empty()) lines.emplace_back();
    lines.back() += part;
  }
  for (std::string& line : lines) line = without_space(line);
  return lines;
}

/// Narrows the widest columns until each line of the table has at most `columns` characters, or
/// until no column can be narrower.
void fit(std::vector<TableColumn>& table, std::size_t columns) {
  std::vector<std::size_t> least;
  std::size_t total = 2 * (table.size() - 1);
  for (const TableColumn& column : table) {
    least.push_back(1);
    for (std::size_t i = 0; i < column.cells.size(); ++i) {
      // The title of a column of numbers can be wrapped. Its numbers cannot.
      const std::string& cell = column.cells[i];
      const bool is_whole = column.is_number && i > 0;
      for (const std::string_view part :
           is_whole ? std::vector<std::string_view>{cell} : parts_of(cell)) {
        least.back() = std::max(least.back(), count_code_points(without_space(part)));
      }
    }
    total += column.width;
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
    TableColumn shown{.cells = {column.title}};
    for (const Json& row : rows_) {
      const Json* const value = row.find(column.key);
      shown.is_number = shown.is_number || (value && value->is_number());
      shown.cells.push_back(column.text ? printable(column.text(row))
                                        : cell(column, value ? *value : Json()));
    }
    for (const std::string& text : shown.cells)
      shown.width = std::max(shown.width, count_code_points(text));
    table.push_back(std::move(shown));
  }
  if (columns > 0) fit(table, columns);
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
        line += (c == 0 ? "" : "  ") + (table[c].is_number ? gap + text : text + gap);
      }
      line.resize(line.find_last_not_of(' ') + 1);  // no trailing spaces
      out << line << '\n';
    }
  }
}

}  // namespace longhand::app
