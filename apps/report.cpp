#include "apps/report.h"

#include <algorithm>
#include <cstdio>
#include <iomanip>
#include <ostream>

#include "core/error.h"
#include "core/quote.h"

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

}  // namespace

void Report::print(std::ostream& out, bool as_json) const {
  if (!as_json) return print_table(out);
  Json all = head_;
  all["rows"] = rows_;
  out << all << '\n';
}

void Report::print_table(std::ostream& out) const {
  std::vector<std::vector<std::string>> lines{{}};
  for (const Column& column : columns_) lines[0].push_back(column.title);
  for (const Json& row : rows_) {
    std::vector<std::string> line;
    for (const Column& column : columns_) {
      const Json* const value = row.find(column.key);
      line.push_back(cell(column, value ? *value : Json()));
    }
    lines.push_back(std::move(line));
  }
  for (const std::vector<std::string>& line : lines) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      // Text is aligned left and numbers right; lines have no trailing spaces.
      std::size_t width = 0;
      for (const auto& other : lines) width = std::max(width, other[c].size());
      const bool number = std::ranges::any_of(rows_, [&](const Json& row) {
        const Json* const value = row.find(columns_[c].key);
        return value && value->is_number();
      });
      const std::string gap(width - line[c].size(), ' ');
      const bool last = c + 1 == columns_.size();
      out << (number ? gap + line[c] : line[c] + (last ? "" : gap)) << (last ? "\n" : "  ");
    }
  }
}

}  // namespace longhand::app
