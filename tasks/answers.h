#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhand::tasks {

/// A line of an outside file of answers: {"prompt": "...", "answer": "..."}, other members aside.
struct Answer {
  static constexpr std::size_t longest_line = std::size_t{16} << 20;  // bytes

  std::string prompt, answer;

  /// Anything else is refused in one line that begins with `source`.
  static Answer parse(std::string_view line, std::string_view source);
};

}  // namespace longhand::tasks
