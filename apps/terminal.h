#pragma once

#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace longhand::app {

/// True if lines written to this descriptor may be coloured and overwritten. It must be a terminal
/// other than "dumb", and NO_COLOR must not be set.
bool is_rich_terminal(int descriptor);

/// Number of columns that tables written to this descriptor may use. This is the variable COLUMNS
/// if it is set, otherwise the width of the terminal. 0 if there is no limit.
std::size_t table_columns(int descriptor);

/// Number of columns of a line on standard error that is overwritten. 0 if lines there cannot be
/// overwritten.
std::size_t status_columns();

/// Writes the words of a text, and ends the line. `column` is the number of characters that the
/// line already has. A word that would exceed `width` columns begins a new line of `indent` spaces,
/// unless it is the first word. A word that is longer than a line is divided, after a comma if
/// possible.
void write_wrapped(std::ostream& out, std::string_view text, std::size_t column, std::size_t indent,
                   std::size_t width);

/// The text in bold, or in bold red, if `rich`. Otherwise the unchanged text.
std::string bold(std::string_view text, bool rich);
std::string alarming(std::string_view text, bool rich);

/// Shows what a long command is doing. On a terminal, this is one line that is overwritten and
/// finally erased. Otherwise a line is printed at most every ten seconds, and none in the first ten
/// seconds.
class StatusLine {
 public:
  /// Writes to `out`, which must live longer than this object. `columns` is the width of the
  /// terminal, or 0 if `out` is not a terminal.
  StatusLine(std::ostream& out, std::size_t columns);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  void show(std::string_view text);

 private:
  std::ostream& out_;
  std::size_t columns_;
  std::chrono::steady_clock::time_point next_;  // time of the next line that is printed
  bool open_ = false;
};

}  // namespace longhand::app
