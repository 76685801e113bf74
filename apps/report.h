#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/json.h"

namespace longhand::app {

/// The results of a command, printed either as an aligned table or as one JSON object.
class Report {
 public:
  struct Column {
    std::string key;          // key of the column's values in the JSON rows
    std::string title;        // title of the table's column
    std::string format = {};  // printf format for numbers; default "%.4g"
    /// Makes the text of the column's cell in a row. By default, the cell shows the row's value
    /// under `key`.
    std::function<std::string(const Json& row)> text = {};
  };

  explicit Report(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Sets a value of the whole report. It appears in the JSON only.
  void set(const std::string& key, Json value) { head_[key] = std::move(value); }
  /// Adds a row: an object whose keys are the columns' keys. The table shows null as "-". Values
  /// under keys that belong to no column appear in the JSON only.
  void add(Json row) { rows_.push_back(std::move(row)); }
  const std::vector<Json>& rows() const { return rows_; }

  /// Prints the report. On a terminal, long cells are wrapped so that the table fits the terminal's
  /// width.
  void print(std::ostream& out, bool as_json) const;
  /// Prints the table in lines of at most `columns` characters where this is possible. If `columns`
  /// is 0, the length of lines is not limited.
  void print_table(std::ostream& out, std::size_t columns) const;

 private:
  std::vector<Column> columns_;
  Json head_ = Json::object();
  std::vector<Json> rows_;
};

}  // namespace longhand::app
