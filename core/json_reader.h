#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace longhand {

/// Reads JSON text from front to back, value by value, and keeps nothing: for files with a great
/// many small values, where Json would build each of them. What is not there as asked is an Error
/// that names the file and the byte, and so is a nesting of more than Json::deepest.
///
///   for (reader.open_object(); reader.next_member();) {
///     if (reader.name() == "size") size = reader.integer(); else reader.skip();
///   }
///
/// The text between the values read is checked as strictly as the values.
class JsonReader {
 public:
  /// `file` begins the messages. The text must outlive the reader; an Error if it is not UTF-8.
  JsonReader(std::string_view text, std::string file);
  /// A reader of one value that skip() gave: for members that are to be read in another order than
  /// the file's.
  JsonReader at(std::string_view value) const;

  void open_object();
  /// True before each member, false after the last; then the object is closed.
  bool next_member();
  std::string_view name() const { return name_; }  // until the next member of any object

  void open_array();
  bool next_element();

  std::string_view string();  // until the next string is read; copies only if it has escapes
  std::int64_t integer();
  std::string_view number();  // its text, whatever its size
  bool at_object();
  bool at_array();
  bool at_string();
  bool at_number();
  /// What comes next, for messages: "an object", "the number 2.0".
  std::string in_words();
  /// One whole value of any kind; its text.
  std::string_view skip();
  /// One whole value. Of several members of one name the last counts.
  Json value();
  /// Nothing may follow.
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
