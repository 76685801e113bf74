#include "apps/book/example.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "apps/html/page.h"
#include "apps/html/svg.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quote.h"

namespace longhand::app::book {
namespace {

using catalog::HostTensor;

// Maximum permitted difference between a result written in an example and the computed result.
// Examples round their results to four decimals.
constexpr double allowed = 0.51e-4;

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == text.npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

void collect(const Json& json, std::size_t depth, HostTensor& tensor, std::string_view line) {
  if (!json.is_array()) {
    LONGHAND_CHECK(json.is_number() && depth == static_cast<std::size_t>(tensor.shape.rank()),
                   "example ", quote(line),
                   ": expected a number, or nested lists of equal lengths");
    tensor.values.push_back(json.number());
    return;
  }
  const bool fits = depth < static_cast<std::size_t>(tensor.shape.rank()) &&
                    json.size() == static_cast<std::size_t>(tensor.shape[static_cast<int>(depth)]);
  LONGHAND_CHECK(fits, "example ", quote(line), ": expected lists of equal lengths");
  for (const Json& one : json.elements()) collect(one, depth + 1, tensor, line);
}

HostTensor tensor_of(std::string_view line, std::string_view list) {
  const std::optional<Json> json = Json::parse(list);
  LONGHAND_CHECK(json.has_value(), "example ", quote(line), ": expected a number or a list");
  std::vector<std::int64_t> shape;
  for (const Json* level = &*json; level->is_array(); level = &(*level)[0]) {
    LONGHAND_CHECK(!level->empty() && shape.size() < 4, "example ", quote(line),
                   ": expected non-empty lists of numbers, nested at most four deep");
    shape.push_back(static_cast<std::int64_t>(level->size()));
  }
  HostTensor tensor{Shape(shape), {}};
  collect(*json, 0, tensor, line);
  return tensor;
}

std::string number_text(double value) {
  std::string text = html::decimals(value, 4);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

/// A tensor in the notation of examples: [[1, 2], [3, 4]].
std::string list_text(const HostTensor& tensor, int axis, std::size_t& next) {
  if (axis == tensor.shape.rank()) return number_text(tensor.values[next++]);
  std::string text = "[";
  for (std::int64_t i = 0; i < tensor.shape[axis]; ++i) {
    text += (i > 0 ? ", " : "") + list_text(tensor, axis + 1, next);
  }
  return text + "]";
}
std::string list_text(const HostTensor& tensor) {
  std::size_t next = 0;
  return list_text(tensor, 0, next);
}

}  // namespace

Example parse_example(std::string_view text) {
  Example example;
  std::istringstream lines{std::string(text)};
  std::string line;
  LONGHAND_CHECK(std::getline(lines, line), "an example has no lines");
  std::istringstream first(line);
  std::string name;
  first >> name;
  example.operation = &catalog::find(name);
  for (std::string attribute; first >> attribute;) {
    const std::size_t sign = attribute.find('=');
    LONGHAND_CHECK(sign != attribute.npos, "example ", quote(line), ": expected NAME=VALUE");
    example.given.values.attributes[attribute.substr(0, sign)] = attribute.substr(sign + 1);
  }
  const auto& inputs = example.operation->inputs;
  while (std::getline(lines, line)) {
    if (trimmed(line).empty()) continue;
    const std::size_t sign = line.find_first_of("=:");
    LONGHAND_CHECK(sign != line.npos, "example ", quote(line),
                   ": expected \"NAME = VALUE\" or \"NAME: VALUE\"");
    const std::string what = trimmed(line.substr(0, sign));
    HostTensor tensor = tensor_of(line, trimmed(line.substr(sign + 1)));
    if (line[sign] == ':') {
      const bool given = std::ranges::count(example.operation->outputs, what) > 0 ||
                         (what.starts_with("d") &&
                          std::ranges::count(inputs, what.substr(1), &catalog::Argument::name) > 0);
      LONGHAND_CHECK(given, "example ", quote(line), ": ", name, " has no output or gradient ",
                     what);
      example.claimed.emplace_back(what, std::move(tensor));
    } else if (std::ranges::count(inputs, what, &catalog::Argument::name) > 0) {
      example.given.values.inputs[what] = std::move(tensor);
    } else {
      const bool gradient = what.starts_with("d") &&
                            std::ranges::count(example.operation->outputs, what.substr(1)) > 0;
      LONGHAND_CHECK(gradient, "example ", quote(line), ": ", name,
                     " has no input or output gradient ", what);
      example.given.output_gradients[what.substr(1)] = std::move(tensor);
    }
  }
  return example;
}

std::map<std::string, HostTensor> compute(const Example& example) {
  const auto backend = make_reference_backend();
  const auto is_output = [&](const std::string& name) {
    return std::ranges::count(example.operation->outputs, name) > 0;
  };
  const bool gradients = std::ranges::any_of(
      example.claimed, [&](const auto& claim) { return !is_output(claim.first); });
  std::map<std::string, HostTensor> results;
  for (const NamedTensor& one :
       audit(*example.operation, example.given, *backend, DType::f64, gradients)) {
    HostTensor tensor{one.tensor.shape(), {}};
    if (is_float(one.tensor.dtype())) {
      tensor.values = one.tensor.to_doubles();
    } else {
      for (const auto value : one.tensor.to_ints()) {
        tensor.values.push_back(static_cast<double>(value));
      }
    }
    results.emplace(one.name, std::move(tensor));
  }
  return results;
}

std::string disagreement(const Example& example) {
  const auto results = compute(example);
  for (const auto& [name, claimed] : example.claimed) {
    const auto found = results.find(name);
    if (found == results.end())
      return text(example.operation->name, " has no output or gradient ", name);
    const HostTensor& is = found->second;
    bool same = is.values.size() == claimed.values.size();
    for (std::size_t i = 0; same && i < is.values.size(); ++i) {
      same = std::abs(is.values[i] - claimed.values[i]) <= allowed;
    }
    if (!same) {
      return text(example.operation->name, ": ", name, " is ", list_text(is), ", not ",
                  list_text(claimed));
    }
  }
  return {};
}

std::string example_html(const Example& example) {
  const auto results = compute(example);
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const std::string& name, const HostTensor& tensor, std::string_view what) {
    rows.push_back({text("<code>", html::escape(name), "</code>"),
                    text("<code>", html::escape(list_text(tensor)), "</code>"), std::string(what)});
  };
  for (const auto& [name, tensor] : example.given.values.inputs) row(name, tensor, "given");
  for (const std::string& output : example.operation->outputs) {
    if (results.contains(output)) row(output, results.at(output), "computed");
  }
  for (const auto& [name, tensor] : example.given.output_gradients)
    row("d" + name, tensor, "given");
  for (const auto& [name, tensor] : results) {
    if (std::ranges::count(example.operation->outputs, name) == 0) row(name, tensor, "computed");
  }
  std::string attributes;
  for (const auto& [name, value] : example.given.values.attributes) {
    attributes += text(' ', name, '=', value);
  }
  return text("<p>With <code>", html::escape(example.operation->name + attributes),
              "</code>, as computed when this book was made:</p>\n",
              html::table({"", "numbers", ""}, rows));
}

}  // namespace longhand::app::book
