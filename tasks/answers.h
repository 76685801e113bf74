#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand::tasks {

/// Optional members of a record that describe its tokens.
struct RecordMarks {
  /// {"pairs": [[i, j], ...]}: token i depends on the earlier token j. Tokens are numbered from 0,
  /// through prompt and answer.
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  /// {"scored": [i, ...]}: ascending indices of those tokens of the answer that are trained and
  /// scored. No value: all tokens of the answer.
  std::optional<std::vector<std::int32_t>> scored;
};

/// A record is one line of a file: {"prompt": "...", "answer": "..."}. Other members are ignored.
struct Answer {
  static constexpr std::size_t longest_line = std::size_t{16} << 20;  // bytes

  std::string prompt, answer;

  /// Throws an Error that begins with `source` if the line has another form.
  static Answer parse(std::string_view line, std::string_view source);
  /// Like parse() above. Also reads the members of RecordMarks.
  static Answer parse(std::string_view line, std::string_view source, RecordMarks& marks);
};

}  // namespace longhand::tasks
