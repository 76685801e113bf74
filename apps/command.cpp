#include "apps/command.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <sstream>

namespace longhand::app {
namespace {

namespace po = boost::program_options;

constexpr const char* plain_words = "[words]";  // Boost wants a name for what has none

std::map<std::string, Command, std::less<>>& command_registry() {
  static std::map<std::string, Command, std::less<>> all;
  return all;
}

/// The options as Boost knows them. Defaults are only shown: Arguments applies them, so that what
/// was given and what was not can be told apart.
po::options_description describe(const Command& command) {
  po::options_description all("options");
  for (const Option& option : command.options) {
    if (option.value.empty()) {
      all.add_options()(option.name.c_str(), po::bool_switch(), option.meaning.c_str());
      continue;
    }
    auto* const value = po::value<std::vector<std::string>>();
    value->value_name(option.value);
    const std::string meaning =
        option.otherwise.empty() ? option.meaning : option.meaning + " (" + option.otherwise + ")";
    all.add_options()(option.name.c_str(), value, meaning.c_str());
  }
  all.add_options()("help,h", po::bool_switch(), "print this");
  return all;
}

/// A flag as the command names it: --batch-tokens is --batch_tokens.
std::string as_named(const std::string& word, const std::vector<Option>& options) {
  if (!word.starts_with("--")) return word;
  const std::size_t end = std::min(word.find('='), word.size());
  const std::string name = word.substr(2, end - 2);
  const auto same = [](char a, char b) { return a == b || (a == '-' && b == '_'); };
  for (const Option& option : options) {
    if (option.name != name && std::ranges::equal(name, option.name, same)) {
      return "--" + option.name + word.substr(end);
    }
  }
  return word;
}

std::string one_line(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return message;
}

}  // namespace

bool Arguments::flag(std::string_view name) const { return given(name); }

bool Arguments::given(std::string_view name) const { return given_.contains(name); }

Arguments Arguments::without(std::string_view name) const {
  Arguments others = *this;
  std::erase_if(others.given_, [&](const std::string& given) { return given == name; });
  return others;
}

const std::string& Arguments::word(std::string_view name) const {
  const std::vector<std::string>& all = words(name);
  if (all.empty()) wrong_usage("--", name, " is missing");
  return all.back();
}

const std::vector<std::string>& Arguments::words(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  return parse_integer(text("--", name), word(name), low, high);
}

double Arguments::number(std::string_view name, double low, double high) const {
  return parse_number(text("--", name), word(name), low, high);
}

Arguments Command::parse(const std::vector<std::string>& words) const {
  constexpr auto style =
      po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::options_description known = describe(*this);
  po::options_description with_plain;
  with_plain.add(known).add_options()(plain_words, po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add(plain_words, -1);

  Arguments arguments;
  po::variables_map found;
  std::vector<std::string> named = words;
  const auto dashes = std::ranges::find(words, "--");
  std::transform(words.begin(), dashes, named.begin(),
                 [&](const std::string& word) { return as_named(word, options); });
  try {
    po::store(
        po::command_line_parser(named).options(with_plain).positional(positions).style(style).run(),
        found);
  } catch (const po::error& error) {
    wrong_usage(one_line(error.what()));
  }
  if (found["help"].as<bool>()) {
    arguments.given_.insert("help");
    return arguments;
  }
  if (found.count(plain_words)) {
    arguments.plain_ = found[plain_words].as<std::vector<std::string>>();
    if (dashes != words.end()) {
      arguments.after_dashes_ =
          std::min(static_cast<std::size_t>(words.end() - dashes - 1), arguments.plain_.size());
    }
  }
  if (!takes_words && !arguments.plain_.empty()) {
    wrong_usage("unexpected '", one_line(arguments.plain_.front()), "'");
  }
  for (const Option& option : options) {
    if (option.value.empty()) {
      if (found[option.name].as<bool>()) arguments.given_.insert(option.name);
      continue;
    }
    if (found.count(option.name)) {
      auto values = found[option.name].as<std::vector<std::string>>();
      if (!option.repeats && values.size() > 1) {
        wrong_usage("--", option.name, " is given ", values.size(), " times");
      }
      arguments.given_.insert(option.name);
      arguments.values_[option.name] = std::move(values);
    } else if (!option.otherwise.empty()) {
      arguments.values_[option.name] = {option.otherwise};
    }
  }
  return arguments;
}

std::string Command::help() const {
  std::ostringstream out;
  out << summary << "\n\nusage\n";
  for (const std::string& form : usage) {
    out << "  longhand " << name << (form.empty() ? "" : " ") << form << '\n';
  }
  out << '\n' << describe(*this);
  if (!notes.empty()) out << '\n' << notes << '\n';
  out << (examples.size() == 1 ? "\nexample\n" : "\nexamples\n");
  for (const std::string& example : examples) out << "  longhand " << example << '\n';
  return out.str();
}

Register::Register(Command command) {
  std::string name = command.name;
  command_registry().emplace(std::move(name), std::move(command));
}

const std::map<std::string, Command, std::less<>>& commands() { return command_registry(); }

std::vector<Option> join(std::vector<Option> first, const std::vector<Option>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Option json_option() { return {"json", "", "print one JSON object and nothing else"}; }

std::int64_t parse_integer(std::string_view subject, std::string_view text, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    wrong_usage(subject, ": expected an integer from ", low, " to ", high, ", got '", text, "'");
  }
  return value;
}

double parse_number(std::string_view subject, std::string_view text, double low, double high) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(number >= low && number <= high)) {
    wrong_usage(subject, ": expected a number from ", low, " to ", high, ", got '", text, "'");
  }
  return number;
}

}  // namespace longhand::app
