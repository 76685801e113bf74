#include "apps/command.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "apps/terminal.h"
#include "core/nearest.h"
#include "tasks/task.h"

namespace longhand::app {
namespace {

namespace po = boost::program_options;

// Name of the positional arguments. Boost requires one.
constexpr const char* plain_words = "[words]";

std::map<std::string, Command, std::less<>>& command_registry() {
  static std::map<std::string, Command, std::less<>> all;
  return all;
}

/// A command's options in the form of Boost.Program_options, without default values. The class
/// Arguments adds the defaults, so that it can distinguish them from options given by the user.
po::options_description describe(const Command& command) {
  po::options_description all;
  for (const CliFlag& option : command.options) {
    if (option.placeholder.empty()) {
      all.add_options()(option.name.c_str(), po::bool_switch());
    } else {
      all.add_options()(option.name.c_str(), po::value<std::vector<std::string>>());
    }
  }
  all.add_options()("help,h", po::bool_switch());
  return all;
}

/// Names of options in other programs, and the names of our options for the same setting.
constexpr std::pair<std::string_view, std::string_view> all_aliases[] = {
    {"batch-size", "batch"},      {"device", "backend"},     {"eval-every", "evaluate_every"},
    {"grad-clip", "clip"},        {"learning-rate", "rate"}, {"lr", "rate"},
    {"max-new-tokens", "tokens"}, {"max-tokens", "tokens"},  {"output", "out"},
    {"samples", "count"},         {"temp", "temperature"},   {"warmup", "warm_up"},
    {"warmup-steps", "warm_up"},  {"weight-decay", "decay"}};

/// True if the names are equal except for dashes and underscores.
bool is_same_name(std::string_view a, std::string_view b) {
  const auto same = [](char x, char y) {
    return x == y || (x == '-' && y == '_') || (x == '_' && y == '-');
  };
  return std::ranges::equal(a, b, same);
}

/// Returns the option `name`, which other programs call `alias`. Returns null if the command has no
/// option `name`, or if the command itself has an option with the name `alias`.
const CliFlag* option_of_alias(std::string_view alias, std::string_view name,
                               const std::vector<CliFlag>& options) {
  const auto find = [&](std::string_view wanted) {
    const auto found = std::ranges::find_if(
        options, [&](const CliFlag& option) { return is_same_name(wanted, option.name); });
    return found == options.end() ? nullptr : &*found;
  };
  return find(alias) ? nullptr : find(name);
}

/// Replaces the name of a flag by the name of the command's option: dashes and underscores become
/// those of the option's name, and an alias such as --lr becomes --rate.
std::string as_named(const std::string& word, const std::vector<CliFlag>& options) {
  if (!word.starts_with("--")) return word;
  const std::size_t end = std::min(word.find('='), word.size());
  const std::string_view name = std::string_view(word).substr(2, end - 2);
  for (const CliFlag& option : options) {
    if (is_same_name(name, option.name)) return "--" + option.name + word.substr(end);
  }
  for (const auto& [alias, of] : all_aliases) {
    if (!is_same_name(name, alias)) continue;
    if (const CliFlag* const option = option_of_alias(alias, of, options)) {
      return "--" + option->name + word.substr(end);
    }
  }
  return word;
}

/// A hint that names the known option most similar to an unknown flag.
std::string did_you_mean_flag(const std::string& flag, const std::vector<CliFlag>& options) {
  std::vector<std::string> known{"--help"};
  for (const CliFlag& option : options) known.push_back(shown_flag(option.name));
  return did_you_mean(flag, known);
}

constexpr std::size_t most_help_columns = 80, most_flag_columns = 26;

/// Writes a flag and its help in two columns. `width` is the width of the flags' column.
void write_option(std::ostream& out, const std::string& flag, std::string_view meaning,
                  std::size_t width, std::size_t columns) {
  out << "  " << flag << std::string(flag.size() < width ? width - flag.size() : 0, ' ');
  if (flag.size() > width) out << '\n' << std::string(width + 2, ' ');
  out << "  ";
  write_wrapped(out, meaning, width + 4, width + 4, columns);
}

/// True if a line of notes begins a new topic: "--out writes ...", "`check` reads ..." or
/// "columns: train ...".
bool begins_topic(std::string_view line) {
  const std::string_view word = line.substr(0, line.find(' '));
  return line.starts_with("--") || line.starts_with('`') || word.ends_with(':');
}

/// Writes notes of a command. If a line is longer than `terminal_columns`, the lines of each topic
/// are joined and wrapped again to `columns`.
void write_notes(std::ostream& out, const std::string& notes, std::size_t columns,
                 std::size_t terminal_columns) {
  std::size_t longest = 0;
  std::vector<std::string> topics;
  std::istringstream lines(notes);
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
    if (topics.empty() || topics.back().empty() || line.empty() || begins_topic(line)) {
      topics.push_back(line);
    } else {
      topics.back() += ' ' + line;
    }
  }
  if (terminal_columns == 0 || longest <= terminal_columns) {
    out << notes << '\n';
  } else {
    for (const std::string& topic : topics) write_wrapped(out, topic, 0, 0, columns);
  }
}

std::string one_line(std::string message) {
  for (char& c : message) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return message;
}

/// Parses the options and plain arguments of a command line with Boost.Program_options. Words after
/// "--" are plain arguments.
po::variables_map parsed_words(const std::vector<std::string>& words, const Command& command) {
  constexpr auto style =
      po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
  po::options_description known = describe(command);
  known.add_options()(plain_words, po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add(plain_words, -1);
  std::vector<std::string> named = words;
  std::transform(words.begin(), std::ranges::find(words, "--"), named.begin(),
                 [&](const std::string& word) { return as_named(word, command.options); });
  po::variables_map found;
  try {
    po::store(
        po::command_line_parser(named).options(known).positional(positions).style(style).run(),
        found);
  } catch (const po::unknown_option& error) {
    const std::string flag = one_line(error.get_option_name());
    wrong_usage("there is no option ", flag, did_you_mean_flag(flag, command.options));
  } catch (const po::error& error) {
    wrong_usage(one_line(error.what()));
  }
  return found;
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
  if (all.empty()) wrong_usage(shown_flag(name), " is missing");
  return all.back();
}

const std::vector<std::string>& Arguments::words(std::string_view name) const {
  static const std::vector<std::string> none;
  const auto found = values_.find(name);
  return found == values_.end() ? none : found->second;
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  return parse_integer(shown_flag(name), word(name), low, high);
}

double Arguments::number(std::string_view name, double low, double high) const {
  return parse_number(shown_flag(name), word(name), low, high);
}

Arguments Command::parse(const std::vector<std::string>& words) const {
  const po::variables_map found = parsed_words(words, *this);
  Arguments arguments;
  if (found.count(plain_words)) {
    arguments.plain_ = found[plain_words].as<std::vector<std::string>>();
  }
  if (found["help"].as<bool>()) {
    arguments.given_.insert("help");
    if (found.count("task")) {
      arguments.given_.insert("task");
      arguments.values_["task"] = found["task"].as<std::vector<std::string>>();
    }
    return arguments;
  }
  const auto dashes = std::ranges::find(words, "--");
  if (dashes != words.end()) {
    arguments.after_dashes_ =
        std::min(static_cast<std::size_t>(words.end() - dashes - 1), arguments.plain_.size());
  }
  if (!takes_words && !arguments.plain_.empty()) {
    wrong_usage("unexpected argument '", one_line(arguments.plain_.front()), "'");
  }
  for (const CliFlag& option : options) {
    if (option.placeholder.empty()) {
      if (found[option.name].as<bool>()) arguments.given_.insert(option.name);
      continue;
    }
    if (found.count(option.name)) {
      auto values = found[option.name].as<std::vector<std::string>>();
      if (!option.repeats && values.size() > 1) {
        wrong_usage(shown_flag(option.name), ": expected one value, got ", values.size());
      }
      arguments.given_.insert(option.name);
      arguments.values_[option.name] = std::move(values);
    } else if (!option.default_value.empty()) {
      arguments.values_[option.name] = {option.default_value};
    }
  }
  return arguments;
}

std::string Command::help(const Arguments& beside, bool rich, std::size_t terminal_columns) const {
  const std::size_t columns =
      terminal_columns == 0 ? most_help_columns : std::min(most_help_columns, terminal_columns);
  const bool all = std::ranges::count(beside.plain(), "all") > 0;
  std::string task = beside.given("task") ? beside.word("task") : "";
  try {
    task = tasks::named_task(task).kind.name;
  } catch (const Error&) {
    // No task or an unknown task is named: the help lists no options of a task.
  }
  struct Line {
    std::string flag, meaning;
  };
  std::vector<std::pair<std::string, std::vector<Line>>> groups;
  std::size_t width = 0, hidden = 0, of_tasks = 0;
  const auto add = [&](const CliFlag& option, std::string meaning) {
    if (!option.default_value.empty()) meaning += " (" + option.default_value + ")";
    std::string flag = shown_flag(option.name);
    if (!option.placeholder.empty()) flag += ' ' + option.placeholder;
    if (flag.size() <= most_flag_columns) width = std::max(width, flag.size());
    auto group = std::ranges::find(groups, option.group, [](const auto& g) { return g.first; });
    if (group == groups.end()) group = groups.insert(groups.end(), {option.group, {}});
    group->second.push_back({std::move(flag), std::move(meaning)});
  };
  for (const CliFlag& option : options) {
    const auto own = option.of_tasks.find(task);
    if (own != option.of_tasks.end()) {
      add(option, own->second);
    } else if (!all && !option.of_tasks.empty()) {
      ++of_tasks;
    } else if (!all && option.rare) {
      ++hidden;
    } else {
      add(option, option.help);
    }
  }
  const bool more = hidden > 0;
  add({"help", "", ""},
      more ? "print this help; `--help all`: with all options" : "print this help");

  if (all) {
    for (const auto& [alias, option] : aliases()) {
      add({alias, "", "", {}, false, "aliases"}, "same as " + shown_flag(option));
    }
  }

  std::ostringstream out;
  write_wrapped(out, summary, 0, 0, terminal_columns == 0 ? summary.size() : terminal_columns);
  out << '\n' << bold("usage", rich) << '\n' << forms();
  for (const auto& [heading, lines] : groups) {
    out << '\n' << bold(heading, rich) << '\n';
    for (const Line& line : lines) write_option(out, line.flag, line.meaning, width, columns);
  }
  if (of_tasks > 0 && task.empty()) {
    out << '\n';
    write_wrapped(out, text("`longhand ", name, " --help --task NAME` shows a task's own options."),
                  0, 0, columns);
  } else if (!notes.empty()) {
    out << '\n';
  }
  if (!notes.empty()) write_notes(out, notes, columns, terminal_columns);
  out << '\n' << bold(examples.size() == 1 ? "example" : "examples", rich) << '\n';
  for (const std::string& example : examples) out << "  longhand " << example << '\n';
  return out.str();
}

std::vector<std::pair<std::string, std::string>> Command::aliases() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [alias, of] : all_aliases) {
    if (const CliFlag* const option = option_of_alias(alias, of, options)) {
      found.emplace_back(alias, option->name);
    }
  }
  return found;
}

std::string Command::forms() const {
  std::string lines;
  for (const std::string& form : usage) {
    lines += text("  longhand ", name, form.empty() ? "" : " ", form, '\n');
  }
  return lines;
}

Register::Register(Command command) {
  std::string name = command.name;
  command_registry().emplace(std::move(name), std::move(command));
}

const std::map<std::string, Command, std::less<>>& commands() { return command_registry(); }

}  // namespace longhand::app
