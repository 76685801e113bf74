#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/json.h"

namespace longhand::app {

/// The figures of a command, printed as an aligned table or as one JSON object from the same
/// values.
class Report {
 public:
  struct Column {
    std::string key;          // name in the JSON rows
    std::string title;        // title of the table's column
    std::string format = {};  // printf format of a number; default "%.4g"
  };

  explicit Report(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Sets a figure of the whole report, which the table does not show.
  void set(const std::string& key, Json value) { head_[key] = std::move(value); }
  /// Adds a row with one value per column, null if there is none. Values with other keys appear in
  /// the JSON only.
  void add(Json row) { rows_.push_back(std::move(row)); }
  const std::vector<Json>& rows() const { return rows_; }

  void print(std::ostream& out, bool as_json) const;

 private:
  void print_table(std::ostream& out) const;

  std::vector<Column> columns_;
  Json head_ = Json::object();
  std::vector<Json> rows_;
};

}  // namespace longhand::app
