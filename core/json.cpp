#include "core/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand {
namespace {

/// Values in one text. Each takes 40 bytes or more, and two bytes of text are enough for one:
/// without a limit a file of some MiB would take a GiB.
constexpr std::size_t most_values = 4'000'000;

/// Builds the value that the library's parser tells of, from the inside out.
class Builder {
 public:
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) { return add(value); }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) { return false; }

  bool start_array(std::size_t) { return open(false); }
  bool start_object(std::size_t) { return open(true); }
  bool key(std::string& name) {
    open_.back().name = std::move(name);
    return true;
  }
  bool end_array() {
    Json::Array elements = std::move(open_.back().elements);
    open_.pop_back();
    return add(std::move(elements));
  }
  bool end_object() {
    Json::Object members = last_of_each(std::move(open_.back().members));
    open_.pop_back();
    return add(Json(std::move(members)));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) {
    return false;
  }

  Json whole;

 private:
  struct Open {
    bool is_object;
    std::string name = {};  // of the member that comes next
    Json::Array elements = {};
    Json::Object members = {};
  };

  /// The last of several members of one name counts.
  static Json::Object last_of_each(Json::Object members) {
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

  bool open(bool is_object) {
    if (open_.size() == Json::deepest) return false;
    open_.push_back({.is_object = is_object});
    return true;
  }

  bool add(Json value) {
    if (++values_ > most_values) return false;
    if (open_.empty()) {
      whole = std::move(value);
    } else if (Open& around = open_.back(); around.is_object) {
      around.members.emplace_back(std::move(around.name), std::move(value));
    } else {
      around.elements.push_back(std::move(value));
    }
    return true;
  }

  std::vector<Open> open_;
  std::size_t values_ = 0;
};

std::string written(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
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
  Builder builder;
  if (text.find('\0') != std::string_view::npos)
    return std::nullopt;  // which the parser takes for the end
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) return std::nullopt;
  return std::move(builder.whole);
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
      out += written(member.first) + (indent < 0 ? ":" : ": ");
      member.second.write(out, indent, depth + 1);
      before = ',';
    }
    line(depth);
    out += '}';
  } else if (is_array() || is_object()) {
    out += is_array() ? "[]" : "{}";
  } else if (is_string()) {
    out += written(string());
  } else if (const auto* whole = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*whole);
  } else if (const auto* great = std::get_if<std::uint64_t>(&value_)) {
    out += std::to_string(*great);
  } else if (is_number()) {
    out += written(number());
  } else {
    out += is_null() ? "null" : boolean() ? "true" : "false";
  }
}

bool Json::is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
bool Json::is_boolean() const { return std::holds_alternative<bool>(value_); }
bool Json::is_integer() const {
  return std::holds_alternative<std::int64_t>(value_) ||
         std::holds_alternative<std::uint64_t>(value_);
}
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
  LONGHAND_CHECK(place < elements().size(), "JSON: expected more than ", place, " elements, got ",
                 quote(dump()));
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
