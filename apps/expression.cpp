#include "apps/expression.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::app {

struct Expression::Node {
  double value = 0;
  std::string variable = {};
  double (*one)(double) = nullptr;
  double (*two)(double, double) = nullptr;
  std::unique_ptr<Node> first = {}, second = {};

  double at(const std::map<std::string, double>& values) const {
    if (one) return one(first->at(values));
    if (two) return two(first->at(values), second->at(values));
    if (variable.empty()) return value;
    const auto found = values.find(variable);
    return found == values.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }
};

namespace {

using Node = Expression::Node;
using NodePointer = std::unique_ptr<Node>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

struct Named {
  std::string_view name;
  double (*one)(double) = nullptr;
  double (*two)(double, double) = nullptr;
};

constexpr Named known_functions[] = {
    {"abs", [](double x) { return std::abs(x); }},
    {"acos", [](double x) { return std::acos(x); }},
    {"asin", [](double x) { return std::asin(x); }},
    {"atan", [](double x) { return std::atan(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"gelu", [](double x) { return x * normal_share(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"max", nullptr, [](double x, double y) { return std::max(x, y); }},
    {"min", nullptr, [](double x, double y) { return std::min(x, y); }},
    {"relu", [](double x) { return std::max(x, 0.0); }},
    {"sigmoid", sigmoid},
    {"sign", [](double x) { return x > 0   ? 1.0
                                   : x < 0 ? -1.0
                                           : 0.0; }},
    {"silu", [](double x) { return x * sigmoid(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"softplus", [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

NodePointer number_node(double value) {
  auto node = std::make_unique<Node>();
  node->value = value;
  return node;
}
NodePointer call(double (*one)(double), NodePointer of) {
  auto node = std::make_unique<Node>();
  node->one = one;
  node->first = std::move(of);
  return node;
}
NodePointer call(double (*two)(double, double), NodePointer a, NodePointer b) {
  auto node = std::make_unique<Node>();
  node->two = two;
  node->first = std::move(a);
  node->second = std::move(b);
  return node;
}

/// Recursive-descent parser with one function per precedence level.
class FormulaReader {
 public:
  FormulaReader(std::string_view text, std::set<std::string>& variables)
      : text_(text), variables_(variables) {}

  NodePointer whole() {
    NodePointer node = sum();
    if (place_ < text_.size()) expected("an operator");
    return node;
  }

 private:
  [[noreturn]] void expected(std::string_view what) const {
    const std::string_view rest = text_.substr(place_);
    fail("formula: expected ", what, " at character ", place_ + 1, ", got ",
         rest.empty() ? "the end" : quote(rest.substr(0, 20)));
  }
  char peek() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\t')) ++place_;
    return place_ < text_.size() ? text_[place_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++place_;
    return true;
  }

  NodePointer sum() {
    NodePointer left = product();
    for (;;) {
      if (take('+')) {
        left = call([](double a, double b) { return a + b; }, std::move(left), product());
      } else if (take('-')) {
        left = call([](double a, double b) { return a - b; }, std::move(left), product());
      } else {
        return left;
      }
    }
  }
  NodePointer product() {
    NodePointer left = signed_power();
    for (;;) {
      if (take('*')) {
        left = call([](double a, double b) { return a * b; }, std::move(left), signed_power());
      } else if (take('/')) {
        left = call([](double a, double b) { return a / b; }, std::move(left), signed_power());
      } else {
        return left;
      }
    }
  }
  NodePointer signed_power() {
    const Deeper deeper(*this);
    if (take('-')) return call([](double a) { return -a; }, signed_power());
    if (take('+')) return signed_power();
    NodePointer base = atom();
    if (!take('^')) return base;
    return call([](double a, double b) { return std::pow(a, b); }, std::move(base), signed_power());
  }
  NodePointer atom() {
    const char c = peek();
    if (take('(')) {
      NodePointer inside = sum();
      if (!take(')')) expected("')'");
      return inside;
    }
    if (is_digit(c) || c == '.') return number();
    if (is_letter(c)) return named();
    expected("a number, a name or '('");
  }
  NodePointer number() {
    double value = 0;
    const char* const begin = text_.data() + place_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) expected("a number");
    place_ += static_cast<std::size_t>(end - begin);
    if (const char c = peek(); is_letter(c) || c == '(')
      expected("an operator, such as * after a number");
    return number_node(value);
  }
  NodePointer named() {
    const std::size_t begin = place_;
    while (place_ < text_.size() && (is_letter(text_[place_]) || is_digit(text_[place_]))) ++place_;
    const std::string name(text_.substr(begin, place_ - begin));
    if (peek() != '(') {
      for (const Named& f : known_functions) {
        if (f.name == name) expected(text("'(' after ", name));
      }
      if (name == "pi") return number_node(std::numbers::pi);
      if (name == "e") return number_node(std::numbers::e);
      variables_.insert(name);
      auto node = std::make_unique<Node>();
      node->variable = name;
      return node;
    }
    std::vector<std::string> names;
    for (const Named& f : known_functions) {
      names.emplace_back(f.name);
      if (f.name != name) continue;
      take('(');
      NodePointer first = sum();
      NodePointer result;
      if (f.one) {
        result = call(f.one, std::move(first));
      } else {
        if (!take(',')) expected("','");
        NodePointer second = sum();
        result = call(f.two, std::move(first), std::move(second));
      }
      if (!take(')')) expected("')'");
      return result;
    }
    fail("formula: there is no function ", quote(name), did_you_mean(name, names));
  }

  /// An object of this type adds 1 to the parser's recursion depth while it exists. Its constructor
  /// throws an Error if the depth exceeds the limit.
  struct Deeper {
    explicit Deeper(FormulaReader& of) : reader(of) {
      LONGHAND_CHECK(++reader.depth_ <= Expression::deepest,
                     "formula: expected a nesting of at most ", Expression::deepest, " levels");
    }
    ~Deeper() { --reader.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    FormulaReader& reader;
  };

  std::string_view text_;
  std::set<std::string>& variables_;
  std::size_t place_ = 0;
  int depth_ = 0;
};

}  // namespace

Expression::Expression(std::string_view text) : text_(text) {
  LONGHAND_CHECK(text.size() <= longest, "formula: expected at most ", longest, " characters");
  root_ = FormulaReader(text_, variables_).whole();
}
Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

double Expression::operator()(const std::map<std::string, double>& values) const {
  return root_->at(values);
}

std::string Expression::functions() {
  std::string all;
  for (const Named& f : known_functions) all += (all.empty() ? "" : ", ") + std::string(f.name);
  return all;
}

}  // namespace longhand::app
