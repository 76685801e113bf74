#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace longhand::tasks {

inline constexpr std::int32_t most_labels = 4096;  // maximum number of labels of a token

/// Optional members of a record (one line of a file) that describe its tokens.
struct RecordMarks {
  /// {"pairs": [[i, j], ...]}: token i depends on the earlier token j. The tokens of the prompt and
  /// the answer are numbered together, from 0.
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  /// {"scored": [i, ...]}: ascending indices of those tokens of the answer that count in the loss
  /// and in the scores. Without this member, all tokens of the answer count.
  std::optional<std::vector<std::int32_t>> scored;
  struct Label {
    std::int32_t token = 0, group = 0;
    std::string text;
  };
  /// {"labels": [[i, "label"], ...]}: "label" is the right label of token i of the prompt. If a
  /// token has several labels, [i, g, "label"] is its label number g, counted from 0. Entries are
  /// in ascending order of i, then of g.
  std::optional<std::vector<Label>> labels;
};

/// A record: one line of a file, of the form {"prompt": "...", "answer": "..."}. Other members of
/// the JSON object are ignored.
struct Answer {
  static constexpr std::size_t longest_line = std::size_t{16} << 20;  // maximum bytes of a line

  std::string prompt, answer;

  /// Parses a line. Throws an Error that begins with `source` if the line is not a record.
  static Answer parse(std::string_view line, std::string_view source);
  /// Parses a line, including the optional members `pairs` and `scored` and, if `with_labels`,
  /// `labels`.
  static Answer parse(std::string_view line, std::string_view source, RecordMarks& marks,
                      bool with_labels = false);
};

}  // namespace longhand::tasks
