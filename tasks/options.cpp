#include "tasks/options.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/quote.h"

namespace longhand::tasks {
namespace {

/// Joins the names of all items to a list such as "a, b or c".
template <class Range, class Name>
std::string alternatives(const Range& range, Name name) {
  std::string list;
  std::size_t left = std::size(range);
  for (const auto& item : range) {
    list += name(item);
    if (--left > 0) list += left == 1 ? " or " : ", ";
  }
  return list;
}

template <class Number>
bool parse(const std::string& text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

}  // namespace

OptionValues::OptionValues(std::string task, std::vector<TaskOption> options)
    : task_(std::move(task)), options_(std::move(options)) {
  for (const TaskOption& option : options_) values_.push_back(option.default_value);
}

std::size_t OptionValues::index_of(std::string_view name) const {
  for (std::size_t i = 0; i < options_.size(); ++i) {
    if (options_[i].name == name) return i;
  }
  fail("task ", task_, ": expected one of the options ",
       alternatives(options_, [](const TaskOption& option) { return option.name; }), ", got ",
       quote(name));
}

void OptionValues::set(std::string_view name, std::string value) {
  values_[index_of(name)] = std::move(value);
}

const std::string& OptionValues::text(std::string_view name) const {
  return values_[index_of(name)];
}

std::int64_t OptionValues::integer(std::string_view name, std::int64_t least,
                                   std::int64_t most) const {
  std::int64_t value = 0;
  LONGHAND_CHECK(parse(text(name), value) && value >= least && value <= most, "task ", task_,
                 ": option ", name, ": expected a whole number from ", least, " to ", most,
                 ", got ", quote(text(name)));
  return value;
}

double OptionValues::number(std::string_view name, double least, double most) const {
  double value = 0;
  LONGHAND_CHECK(parse(text(name), value) && value >= least && value <= most, "task ", task_,
                 ": option ", name, ": expected a number from ", least, " to ", most, ", got ",
                 quote(text(name)));
  return value;
}

std::size_t OptionValues::choice(std::string_view name,
                                 std::initializer_list<std::string_view> choices) const {
  const std::string& value = text(name);
  std::size_t place = 0;
  for (const std::string_view choice : choices) {
    if (choice == value) return place;
    ++place;
  }
  fail("task ", task_, ": option ", name, ": expected ",
       alternatives(choices, [](std::string_view choice) { return choice; }), ", got ",
       quote(value));
}

}  // namespace longhand::tasks
