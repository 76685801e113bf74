#include "core/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <utility>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/quote.h"
#include "core/utf8.h"

namespace longhand {
namespace {

/// Writes the shortest digits that are read as the same number, always with a point or an exponent.
void write_real(std::string& out, double value) {
  std::array<char, 32> shortest;  // the value as text, for example 1.25e-07
  const auto written = std::to_chars(shortest.data(), shortest.data() + shortest.size(), value,
                                     std::chars_format::scientific);
  std::string_view text(shortest.data(), static_cast<std::size_t>(written.ptr - shortest.data()));
  if (text.front() == '-') {
    out += '-';
    text.remove_prefix(1);
  }
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* const sign = text.data() + e + 1;
  std::from_chars(*sign == '+' ? sign + 1 : sign, text.data() + text.size(), exponent);
  std::string digits(1, text.front());
  if (e > 1) digits += text.substr(2, e - 2);
  const int count = static_cast<int>(digits.size());
  const int point = exponent + 1;  // number of digits before the point
  if (point > 15 || point <= -4) {
    out += digits.front();
    if (count > 1) out.append(".").append(digits, 1);
    const int size = std::abs(exponent);
    out += exponent < 0 ? "e-" : "e+";
    out += (size < 10 ? "0" : "") + std::to_string(size);
  } else if (point <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0') += digits;
  } else if (point >= count) {
    out.append(digits).append(static_cast<std::size_t>(point - count), '0') += ".0";
  } else {
    out.append(digits, 0, static_cast<std::size_t>(point)) += '.';
    out.append(digits, static_cast<std::size_t>(point));
  }
}

}  // namespace

Json::Json() noexcept : value_(nullptr) {}
Json::Json(Scalar, bool value) noexcept : value_(value) {}
Json::Json(Scalar, std::int64_t value) noexcept : value_(value) {}
Json::Json(Scalar, std::uint64_t value) noexcept : value_(value) {
  if (std::in_range<std::int64_t>(value)) value_ = static_cast<std::int64_t>(value);
}
Json::Json(double value) noexcept : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) noexcept : value_(std::move(text)) {}
Json::Json(Array elements) noexcept : value_(std::move(elements)) {}
Json::Json(Object members) noexcept : value_(std::move(members)) {}

Json::Json(std::initializer_list<Json> elements) {
  const bool pairs = std::ranges::all_of(elements, [](const Json& element) {
    return element.is_array() && element.size() == 2 && element[0].is_string();
  });
  if (!pairs) {
    value_ = Array(elements);
    return;
  }
  *this = object();
  for (const Json& pair : elements) (*this)[pair[0].string()] = pair[1];
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() { return Array(); }
Json Json::object() { return Json(Object()); }

std::optional<Json> Json::parse(std::string_view text) {
  try {
    JsonReader reader(text, "JSON");
    Json value = reader.value();
    reader.finish();
    return value;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string json_string(std::string_view text) {
  LONGHAND_CHECK(find_broken_utf8(text) == std::string_view::npos, "expected UTF-8 text, got ",
                 quote(text));
  constexpr std::string_view hex = "0123456789abcdef";
  constexpr std::string_view values = "\b\t\n\f\r\"\\", names = "btnfr\"\\";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const std::size_t known = values.find(c); known != std::string_view::npos) {
      out += '\\';
      out += names[known];
    } else if (byte < 0x20) {
      out.append("\\u00") += {hex[byte / 16], hex[byte % 16]};
    } else {
      out += c;
    }
  }
  return out += '"';
}

std::string Json::dump(int indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

void Json::write(std::string& out, int indent, int depth) const {
  const auto line = [&](int deep) {
    if (indent >= 0) out += '\n' + std::string(static_cast<std::size_t>(indent * deep), ' ');
  };
  if (is_array() && !empty()) {
    char before = '[';
    for (const Json& element : elements()) {
      out += before;
      line(depth + 1);
      element.write(out, indent, depth + 1);
      before = ',';
    }
    line(depth);
    out += ']';
  } else if (is_object() && !empty()) {
    char before = '{';
    for (const Member& member : members()) {
      out += before;
      line(depth + 1);
      out += json_string(replace_broken_utf8(member.first)) + (indent < 0 ? ":" : ": ");
      member.second.write(out, indent, depth + 1);
      before = ',';
    }
    line(depth);
    out += '}';
  } else if (is_array() || is_object()) {
    out += is_array() ? "[]" : "{}";
  } else if (is_string()) {
    out += json_string(replace_broken_utf8(string()));
  } else if (const auto* whole = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*whole);
  } else if (const auto* great = std::get_if<std::uint64_t>(&value_)) {
    out += std::to_string(*great);
  } else if (is_number() && std::isfinite(number())) {
    write_real(out, number());
  } else {
    out += is_null() || is_number() ? "null" : boolean() ? "true" : "false";
  }
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_integer() const {
  return std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<std::uint64_t>(value_);
}
bool Json::is_int64() const { return std::holds_alternative<std::int64_t>(value_); }
bool Json::is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
bool Json::is_string() const { return std::holds_alternative<std::string>(value_); }
bool Json::is_array() const { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

template <class T>
const T& Json::as(std::string_view expected) const {
  const T* const value = std::get_if<T>(&value_);
  LONGHAND_CHECK(value, "JSON: expected ", expected, ", got ", quote(dump()));
  return *value;
}

bool Json::boolean() const { return as<bool>("true or false"); }
std::int64_t Json::integer() const { return as<std::int64_t>("an integer below 2^63"); }
double Json::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* great = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*great);
  return as<double>("a number");
}
const std::string& Json::string() const { return as<std::string>("a text"); }
const Json::Array& Json::elements() const { return as<Array>("an array"); }
const Json::Object& Json::members() const { return as<Object>("an object"); }

std::size_t Json::size() const {
  return is_array() ? elements().size() : is_object() ? members().size() : 0;
}

const Json& Json::operator[](std::size_t place) const {
  LONGHAND_CHECK(place < elements().size(), "JSON: expected an array of more than ", place,
                 " elements, got ", quote(dump()));
  return elements()[place];
}

Json& Json::operator[](std::size_t place) { return const_cast<Json&>(std::as_const(*this)[place]); }

void Json::push_back(Json element) {
  elements();
  std::get<Array>(value_).push_back(std::move(element));
}

const Json* Json::find(std::string_view name) const {
  const auto found = std::ranges::find(members(), name, &Member::first);
  return found == members().end() ? nullptr : &found->second;
}

const Json& Json::operator[](std::string_view name) const {
  const Json* const found = find(name);
  LONGHAND_CHECK(found, "JSON: expected a member ", quote(name), ", got ", quote(dump()));
  return *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  members();
  Object& all = std::get<Object>(value_);
  const auto found = std::ranges::find(all, name, &Member::first);
  return found == all.end() ? all.emplace_back(name, Json()).second : found->second;
}

bool operator==(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number() && a.value_.index() != b.value_.index()) {
    return a.number() == b.number();
  }
  return a.value_ == b.value_;
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace longhand
