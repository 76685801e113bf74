#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "core/json.h"

namespace longhand::app {

/// The figures of a command, printed either as an aligned table or as one JSON object: the same
/// values, so that neither can drift from the other.
class Report {
 public:
  struct Column {
    std::string key;          // in the JSON rows
    std::string title;        // over the table's column
    std::string format = {};  // printf format of a number, "%.4g" if empty
  };

  explicit Report(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// A figure of the whole; the table does not show it.
  void set(const std::string& key, Json value) { head_[key] = std::move(value); }
  /// One value for each column, null where there is none. Values beyond the columns' keys appear
  /// only in the JSON.
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
