#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace longhand {

/// Reads JSON text value by value without storing it, for files with very many small values. An
/// unexpected value, or a nesting deeper than Json::deepest, throws an Error that names the file
/// and the byte.
///
///   for (reader.open_object(); reader.next_member();) {
///     if (reader.name() == "size") size = reader.integer(); else reader.skip();
///   }
///
/// The text between the values read is checked as strictly as the values.
class JsonReader {
 public:
  /// Messages begin with `file`. The text must outlive the reader. Throws an Error if it is not
  /// UTF-8.
  JsonReader(std::string_view text, std::string file);
  /// A reader of a value returned by skip(), to read members in another order than the file's.
  JsonReader at(std::string_view value) const;

  void open_object();
  /// True before each member; false after the last one, when the object has been closed.
  bool next_member();
  std::string_view name() const { return name_; }  // valid until the next member of any object

  void open_array();
  bool next_element();

  std::string_view string();  // valid until the next string is read; copied only if it has escapes
  std::int64_t integer();
  std::string_view number();  // the text of a number of any size
  bool at_object();
  bool at_array();
  bool at_string();
  bool at_number();
  /// A description of the next value for messages: "an object", "the number 2.0".
  std::string in_words();
  /// Skips one complete value and returns its text.
  std::string_view skip();
  /// Reads one complete value. Of members with equal names the last one is used.
  Json value();
  /// Throws an Error unless only white space follows.
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
  bool first_ = false;  // an array or object was just opened
  int depth_ = 0;
  std::string_view name_;
  std::string name_scratch_, string_scratch_;
};

}  // namespace longhand
