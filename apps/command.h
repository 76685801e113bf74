#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace longhand::app {

/// Wrong usage: the program prints the message and exits with 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

template <class... Parts>
[[noreturn]] void wrong_usage(const Parts&... parts) {
  throw UsageError(text(parts...));
}

/// How a flag is written: --batch-tokens of batch_tokens. Both are understood.
std::string shown_flag(std::string_view name);

/// What `make` gives; its Error is wrong usage of a flag.
template <class F>
auto as_usage(std::string_view flag, F make) {
  try {
    return make();
  } catch (const UsageError&) {
    throw;  // it names the flag
  } catch (const Error& error) {
    wrong_usage(shown_flag(flag), ": ", error.what());
  }
}

/// One flag of a command.
struct Option {
  std::string name;            // without the dashes
  std::string value;           // what stands for its value in the help; empty: a switch
  std::string meaning;         // one line
  std::string otherwise = {};  // the value when it is not given; empty: none
  bool repeats = false;
  std::string group = "options";  // its heading in the help
  bool rare = false;              // in `--help all` alone
  /// Of an option that tasks have: what it means to each, in the help of that task.
  std::map<std::string, std::string> of_tasks = {};
};

/// The same, in `--help all` alone.
Option rarely(Option option);

/// What the user typed after the command's name, checked against its options.
class Arguments {
 public:
  bool flag(std::string_view name) const;   // a switch that was given
  bool given(std::string_view name) const;  // an option that was given, not defaulted
  /// The value of an option; wrong usage if it was not given and has no default.
  const std::string& word(std::string_view name) const;
  /// Every value of a repeated option.
  const std::vector<std::string>& words(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  double number(std::string_view name, double low, double high) const;
  /// The same, as if that option had not been given.
  Arguments without(std::string_view name) const;
  /// The words that belong to no option, in order.
  const std::vector<std::string>& plain() const { return plain_; }
  /// The last of the plain words, those that stood after "--".
  std::span<const std::string> after_dashes() const {
    return std::span(plain_).last(after_dashes_);
  }
  /// Nothing was typed.
  bool empty() const { return given_.empty() && plain_.empty(); }
  /// --json was given.
  bool json() const { return flag("json"); }

 private:
  friend struct Command;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string, std::less<>> given_;
  std::vector<std::string> plain_;
  std::size_t after_dashes_ = 0;
};

/// One command of the program. A file of apps/commands/ makes one and registers it; nothing else
/// names it.
struct Command {
  std::string name;
  std::string summary;             // one line
  std::vector<std::string> usage;  // what may follow the name, one form a line
  std::vector<Option> options;
  std::vector<std::string> examples;  // without "longhand"
  std::string notes = {};             // what else the help should say
  bool takes_words = false;           // words that belong to no option are allowed
  /// Returns when done; UsageError: exit status 2, Error: 1.
  std::function<void(const Arguments&)> run;

  Arguments parse(const std::vector<std::string>& words) const;
  /// What --help prints: the options in use, and those of the task that is named beside it; with
  /// `all`, every one. Headings are bold where `rich`.
  std::string help(const Arguments& beside = {}, bool rich = false) const;
  /// The forms of its usage, a line each.
  std::string forms() const;
};

/// Adds a command to the program when it is constructed, before main.
struct Register {
  explicit Register(Command command);
};

/// All commands by name.
const std::map<std::string, Command, std::less<>>& commands();

/// Options joined: those of a command and those it shares with others.
std::vector<Option> join(std::vector<Option> first, const std::vector<Option>& second);

/// --json, for commands that report figures.
Option json_option();

/// text as an integer or number in [low, high]; wrong usage, named by `subject`, if it is not.
std::int64_t parse_integer(std::string_view subject, std::string_view text, std::int64_t low,
                           std::int64_t high);

double parse_number(std::string_view subject, std::string_view text, double low, double high);

}  // namespace longhand::app
