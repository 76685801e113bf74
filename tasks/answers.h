#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace longhand::tasks {

/// One line of a file with answers to check: {"prompt": "...", "answer": "..."}. Other members are
/// ignored.
struct Answer {
  static constexpr std::size_t longest_line = std::size_t{16} << 20;  // bytes

  std::string prompt, answer;

  /// Throws an Error that begins with `source` if the line has another form.
  static Answer parse(std::string_view line, std::string_view source);
};

}  // namespace longhand::tasks
