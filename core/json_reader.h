#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace longhand {

/// Reads JSON text value by value without storing the values, for files with very many small
/// values. Throws an Error that names the file and the byte offset if a value is unexpected or
/// nested deeper than Json::deepest.
///
///   for (reader.open_object(); reader.next_member();) {
///     if (reader.name() == "size") size = reader.integer(); else reader.skip();
///   }
///
/// Text that is skipped is checked as strictly as text that is read.
class JsonReader {
 public:
  /// Messages begin with `file`. The text must outlive the reader. Throws an Error if the text is
  /// not UTF-8.
  JsonReader(std::string_view text, std::string file);
  /// A reader for a value that skip() returned. With such readers, members can be read in any
  /// order.
  JsonReader at(std::string_view value) const;

  void open_object();
  /// Reads the next member's name and returns true. Returns false at the end of the object.
  bool next_member();
  /// The name that next_member() read. Valid until the next member of any object is read.
  std::string_view name() const { return name_; }

  void open_array();
  bool next_element();

  /// Reads a string, which is valid until the next string is read. Its text is copied only if it
  /// contains escapes.
  std::string_view string();
  std::int64_t integer();
  std::string_view number();  // reads a number of any size and returns its text
  bool at_object();
  bool at_array();
  bool at_string();
  bool at_number();
  /// Describes the next value for messages, such as "an object" or "the number 2.0".
  std::string in_words();
  /// Skips one complete value and returns its text.
  std::string_view skip();
  /// Reads one complete value. If members have equal names, the last one is used.
  Json value();
  /// Throws an Error unless the rest of the text is white space.
  void finish();

 private:
  JsonReader() = default;
  [[noreturn]] void expected(std::string_view what) const;
  void skip_space();
  char peek();  // the next character that is not white space; NUL at the end
  void take(char wanted, std::string_view what);
  bool next(char end);
  std::string_view read_string(std::string& unescaped);
  void unescape(std::string& out);
  char32_t four_digits();
  void skip_word(std::string_view word);
  Json read_value(std::size_t& values);

  std::string_view text_;
  std::string file_;
  std::size_t place_ = 0;
  bool first_ = false;  // true directly after an array or object was opened
  int depth_ = 0;
  std::string_view name_;
  std::string name_scratch_, string_scratch_;
};

}  // namespace longhand
