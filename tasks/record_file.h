#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/data_file.h"

namespace longhand::tasks {

/// A file with one record per line. Empty lines are skipped. Only the offsets of the lines are kept
/// in memory.
class RecordFile {
 public:
  /// Reads the file once. Throws an Error if a line is longer than Answer::longest_line.
  explicit RecordFile(const std::filesystem::path& path);

  std::uint64_t size() const { return lines_.size(); }  // number of records
  /// The record's line, without the line break.
  std::string line(std::uint64_t record) const;
  /// The file name and line number of a record, for messages: "train.jsonl:7".
  std::string place(std::uint64_t record) const;

 private:
  struct Line {
    std::uint64_t begin = 0, end = 0;
    std::int64_t number = 0;
  };
  void require_short(const Line& line) const;

  std::string name_;
  DataFile file_;
  std::vector<Line> lines_;
};

}  // namespace longhand::tasks
