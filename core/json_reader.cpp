#include "core/json_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand {
namespace {

/// Maximum number of values in a text. A value needs at least 40 bytes of memory, but may have only
/// two bytes of text. Without this limit, a file of a few MiB could need a GiB of memory.
constexpr std::size_t most_values = 4'000'000;

template <class Integer>
std::optional<Integer> whole(std::string_view digits) {
  Integer value = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, value);
  return read.ptr == end && read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// True if the number whose JSON text is `digits` has an absolute value of at least 1. The number
/// may be too large or too small for a double.
bool is_at_least_one(std::string_view digits) {
  const std::size_t mantissa = std::min(digits.find_first_of("eE"), digits.size());
  const std::size_t point = std::min(digits.substr(0, mantissa).find('.'), mantissa);
  const std::size_t first = digits.substr(0, mantissa).find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  std::int64_t exponent = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (first < point) --exponent;
  std::string_view written = digits.substr(std::min(mantissa + 1, digits.size()));
  if (written.starts_with('+')) written.remove_prefix(1);
  if (written.empty()) return exponent >= 0;
  std::int64_t more = 0;
  const auto read = std::from_chars(written.data(), written.data() + written.size(), more);
  if (read.ec != std::errc()) return written[0] != '-';
  return more >= -exponent;
}

/// Converts digits to a double. Returns no value if the number is too large for a double, and 0 if
/// it is too small. from_chars() reports the same error in both cases.
std::optional<double> real(std::string_view digits) {
  double value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (read.ec == std::errc()) return value;
  if (is_at_least_one(digits)) return std::nullopt;
  return digits.starts_with('-') ? -0.0 : 0.0;
}

/// Index of the first character, at or after `place`, that is not plain: it ends the string, starts
/// an escape or is a control character.
std::size_t end_of_plain(std::string_view text, std::size_t place) {
  // Checks eight bytes at once. Most strings are short, so the processor would often mispredict the
  // end of a loop over single characters. The lowest bit of `special` that is set marks the first
  // character that is not plain.
  constexpr std::uint64_t ones = 0x0101010101010101u, high_bits = 0x80 * ones;
  std::uint64_t eight = 0;
  for (; place + sizeof eight <= text.size(); place += sizeof eight) {
    std::memcpy(&eight, text.data() + place, sizeof eight);
    const auto below = [&](std::uint64_t all, std::uint64_t limit) {
      return (all - limit * ones) & ~all & high_bits;
    };
    const std::uint64_t special =
        below(eight, 0x20) | below(eight ^ '"' * ones, 1) | below(eight ^ '\\' * ones, 1);
    if (special) return place + static_cast<std::size_t>(std::countr_zero(special)) / 8;
  }
  const auto is_plain = [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  };
  while (place < text.size() && is_plain(text[place])) ++place;
  return place;
}

Json::Object last_of_each(Json::Object members) {
  std::vector<std::size_t> order(members.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto name = [&](std::size_t i) -> std::string_view { return members[i].first; };
  std::ranges::stable_sort(order, {}, name);
  std::vector<bool> repeated(members.size());
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    repeated[order[i]] = name(order[i]) == name(order[i + 1]);
  }
  Json::Object kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!repeated[i]) kept.push_back(std::move(members[i]));
  }
  return kept;
}

}  // namespace

JsonReader::JsonReader(std::string_view text, std::string file)
    : text_(text), file_(std::move(file)) {
  const std::size_t broken = find_broken_utf8(text);
  LONGHAND_CHECK(broken == std::string_view::npos, file_, ": not JSON: broken UTF-8 at byte ",
                 broken);
}

JsonReader JsonReader::at(std::string_view value) const {
  JsonReader reader;
  reader.file_ = file_;
  reader.place_ = static_cast<std::size_t>(value.data() - text_.data());
  reader.text_ = text_.substr(0, reader.place_ + value.size());
  return reader;
}

void JsonReader::expected(std::string_view what) const {
  if (place_ == text_.size())
    fail(file_, ": expected ", what, " at byte ", place_, ", got the end of the text");
  fail(file_, ": expected ", what, " at byte ", place_, ", got ", quote(text_.substr(place_, 20)));
}

void JsonReader::skip_space() {
  std::size_t place = place_;
  while (place < text_.size()) {
    const char c = text_[place];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') break;
    ++place;
  }
  place_ = place;
}

char JsonReader::peek() {
  skip_space();
  return place_ < text_.size() ? text_[place_] : '\0';
}

void JsonReader::take(char wanted, std::string_view what) {
  if (peek() != wanted) expected(what);
  ++place_;
}

void JsonReader::open_object() {
  take('{', "an object");
  if (++depth_ > Json::deepest)
    fail(file_, ": JSON: expected at most ", Json::deepest, " nested levels, got more");
  first_ = true;
}

void JsonReader::open_array() {
  take('[', "an array");
  if (++depth_ > Json::deepest)
    fail(file_, ": JSON: expected at most ", Json::deepest, " nested levels, got more");
  first_ = true;
}

bool JsonReader::next(char end) {
  const bool first = std::exchange(first_, false);
  if (peek() == end) {
    ++place_;
    --depth_;
    return false;
  }
  if (!first) take(',', end == ']' ? "',' or ']'" : "',' or '}'");
  return true;
}

bool JsonReader::next_member() {
  if (!next('}')) return false;
  if (peek() != '"') expected("a member's name");
  name_ = read_string(name_scratch_);
  take(':', "':'");
  return true;
}

bool JsonReader::next_element() { return next(']'); }

std::string_view JsonReader::string() {
  if (peek() != '"') expected("a text");
  return read_string(string_scratch_);
}

std::string_view JsonReader::read_string(std::string& unescaped) {
  const std::size_t begin = ++place_;
  const std::string_view plain = text_.substr(begin, end_of_plain(text_, begin) - begin);
  place_ += plain.size();
  if (place_ < text_.size() && text_[place_] == '"') {
    ++place_;
    return plain;
  }
  unescaped.assign(plain);
  while (true) {
    if (place_ == text_.size()) expected("the end of a text");
    const char c = text_[place_];
    if (static_cast<unsigned char>(c) < 0x20) expected("a text without control characters");
    ++place_;
    if (c == '"') return unescaped;
    if (c == '\\') {
      unescape(unescaped);
    } else {
      unescaped += c;
    }
  }
}

char32_t JsonReader::four_digits() {
  unsigned value = 0;
  const char* const begin = text_.data() + place_;
  const char* const end = text_.data() + text_.size();
  if (end - begin < 4 || std::from_chars(begin, begin + 4, value, 16).ptr != begin + 4) {
    expected("four hexadecimal digits");
  }
  place_ += 4;
  return value;
}

void JsonReader::unescape(std::string& out) {
  constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
  const char c = place_ < text_.size() ? text_[place_] : '\0';
  if (const std::size_t known = names.find(c); known != std::string_view::npos && c != '\0') {
    out += values[known];
    ++place_;
    return;
  }
  if (c != 'u') expected("an escape");
  ++place_;
  char32_t unit = four_digits();
  if (unit >= 0xd800 && unit < 0xdc00 && text_.substr(place_, 2) == "\\u") {
    place_ += 2;
    const char32_t low = four_digits();
    if (low < 0xdc00 || low > 0xdfff) expected("the second half of a surrogate pair before this");
    unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
  } else if (unit >= 0xd800 && unit <= 0xdfff) {
    expected("no half of a surrogate pair before this");
  }
  append_utf8(out, unit);
}

std::int64_t JsonReader::integer() {
  if (!at_number()) expected("an integer");
  const std::size_t begin = place_;
  const auto value = whole<std::int64_t>(number());
  if (!value) {
    place_ = begin;
    expected("an integer");
  }
  return *value;
}

/// The grammar of a number is -? (0 | [1-9][0-9]*) ('.' [0-9]+)? ([eE] [+-]? [0-9]+)?
std::string_view JsonReader::number() {
  if (!at_number()) expected("a value");
  const std::size_t start = place_;
  const auto at = [&](char c) { return place_ < text_.size() && text_[place_] == c; };
  const auto digits = [&] {
    const std::size_t begin = place_;
    while (place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9') ++place_;
    if (place_ == begin) expected("a digit");
  };
  if (at('-')) ++place_;
  if (at('0')) {
    ++place_;
  } else {
    digits();
  }
  if (at('.')) {
    ++place_;
    digits();
  }
  if (at('e') || at('E')) {
    ++place_;
    if (at('+') || at('-')) ++place_;
    digits();
  }
  return text_.substr(start, place_ - start);
}

void JsonReader::skip_word(std::string_view word) {
  if (text_.substr(place_, word.size()) != word) expected("a value");
  place_ += word.size();
}

bool JsonReader::at_object() { return peek() == '{'; }
bool JsonReader::at_array() { return peek() == '['; }
bool JsonReader::at_string() { return peek() == '"'; }
bool JsonReader::at_number() {
  const char c = peek();
  return c == '-' || (c >= '0' && c <= '9');
}

std::string JsonReader::in_words() {
  switch (peek()) {
    case '{':
      return "an object";
    case '[':
      return "an array";
    case '"':
      return "a string";
    case 't':
    case 'f':
      return "a boolean";
    case 'n':
      return "null";
    default:
      JsonReader ahead = at(text_.substr(place_));
      return text("the number ", ahead.number().substr(0, 30));
  }
}

std::string_view JsonReader::skip() {
  peek();
  const std::size_t begin = place_;
  // The closing characters of all enclosing arrays and objects.
  std::array<char, Json::deepest> open{};
  std::size_t depth = 0;
  do {
    if (depth > 0 && !(open[depth - 1] == '}' ? next_member() : next_element())) {
      --depth;
      continue;
    }
    switch (peek()) {
      case '{':
        open_object();
        open[depth++] = '}';
        break;
      case '[':
        open_array();
        open[depth++] = ']';
        break;
      case '"':
        string();
        break;
      case 't':
        skip_word("true");
        break;
      case 'f':
        skip_word("false");
        break;
      case 'n':
        skip_word("null");
        break;
      default:
        number();
    }
  } while (depth > 0);
  return text_.substr(begin, place_ - begin);
}

Json JsonReader::value() {
  std::size_t values = 0;
  return read_value(values);
}

Json JsonReader::read_value(std::size_t& values) {
  if (++values > most_values) fail(file_, ": expected at most ", most_values, " JSON values");
  switch (peek()) {
    case '{': {
      Json::Object members;
      for (open_object(); next_member();) {
        std::string name(name_);
        Json member = read_value(values);
        members.emplace_back(std::move(name), std::move(member));
      }
      return Json(last_of_each(std::move(members)));
    }
    case '[': {
      Json::Array elements;
      for (open_array(); next_element();) elements.push_back(read_value(values));
      return elements;
    }
    case '"':
      return std::string(string());
    case 't':
      skip_word("true");
      return true;
    case 'f':
      skip_word("false");
      return false;
    case 'n':
      skip_word("null");
      return nullptr;
    default: {
      const std::size_t begin = place_;
      const std::string_view digits = number();
      if (const auto small = whole<std::int64_t>(digits)) return *small;
      if (const auto great = whole<std::uint64_t>(digits)) return *great;
      const std::optional<double> value = real(digits);
      if (!value) {
        place_ = begin;
        expected("a number that a double can hold");
      }
      return *value;
    }
  }
}

void JsonReader::finish() {
  peek();
  if (place_ != text_.size()) expected("the end");
}

}  // namespace longhand
