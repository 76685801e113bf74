#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace longhand {

/// A JSON value. Members of an object keep their order. Access to a missing member, or to a value
/// as another type, throws an Error. core/json_reader.h reads large texts without storing their
/// values.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  // NOLINTBEGIN(google-explicit-constructor): JSON values are written as C++ values
  Json() noexcept;  // makes the value null
  Json(std::nullptr_t) noexcept : Json() {}
  template <std::same_as<bool> Bool>  // excludes pointers, which would convert to bool
  Json(Bool value) noexcept : Json(Scalar(), value) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) Json(Integer value)
  noexcept
      : Json(Scalar(), static_cast<std::conditional_t<std::signed_integral<Integer>, std::int64_t,
                                                      std::uint64_t>>(value)) {}
  Json(double value) noexcept;
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text) noexcept;
  Json(Array elements) noexcept;
  explicit Json(Object members) noexcept;  // the members' names must be unique
  template <class T>
  Json(const std::vector<T>& elements) : Json(Array(elements.begin(), elements.end())) {}
  /// If each element is a pair that begins with a string, as in {{"a", 1}, {"b", 2}}, makes an
  /// object. Otherwise makes an array.
  Json(std::initializer_list<Json> elements);
  // NOLINTEND(google-explicit-constructor)

  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();

  /// Parses a text. Returns no value if the text is not JSON or is nested deeper than `deepest`. If
  /// several members have the same name, the last one is used.
  static std::optional<Json> parse(std::string_view text);
  static constexpr int deepest = 100;
  /// The JSON text of the value. With an indent, each element is on a line of its own. Without an
  /// indent, there are no line breaks. Invalid UTF-8 is replaced. Infinities and NaN become null.
  std::string dump(int indent = -1) const;

  bool is_null() const;
  bool is_boolean() const;
  bool is_integer() const;
  bool is_int64() const;   // true if integer() can return the value
  bool is_number() const;  // true for integers and reals
  bool is_string() const;
  bool is_array() const;
  bool is_object() const;

  bool boolean() const;
  std::int64_t integer() const;
  double number() const;
  const std::string& string() const;

  std::size_t size() const;  // number of elements of an array or object; 0 for other values
  bool empty() const { return size() == 0; }

  const Array& elements() const;
  Array::const_iterator begin() const { return elements().begin(); }
  Array::const_iterator end() const { return elements().end(); }
  const Json& operator[](std::size_t place) const;
  Json& operator[](std::size_t place);
  void push_back(Json element);

  const Object& members() const;
  const Json* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const Json& operator[](std::string_view name) const;
  /// Returns the member with this name. If it is missing, it is added. If this Json is null, it
  /// first becomes an object.
  Json& operator[](std::string_view name);

  /// Numbers are compared by value. Two objects are equal only if their members are in the same
  /// order.
  friend bool operator==(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  struct Scalar {};
  Json(Scalar, bool value) noexcept;
  Json(Scalar, std::int64_t value) noexcept;
  Json(Scalar, std::uint64_t value) noexcept;
  template <class T>
  const T& as(std::string_view expected) const;
  void write(std::string& out, int indent, int depth) const;

  // An integer has the type int64 if int64 can represent it, otherwise uint64.
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

/// Writes `text`, which must be UTF-8, as a JSON string.
std::string json_string(std::string_view text);

}  // namespace longhand
