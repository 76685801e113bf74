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

/// Invalid usage of the command line: the program prints the message and exits with status 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

template <class... Parts>
[[noreturn]] void wrong_usage(const Parts&... parts) {
  throw UsageError(text(parts...));
}

/// A flag as shown in messages: --batch-tokens for batch_tokens. Both spellings are accepted.
std::string shown_flag(std::string_view name);

/// Returns the result of `make`. An Error thrown by `make` becomes a UsageError that names the
/// flag.
template <class F>
auto as_usage(std::string_view flag, F make) {
  try {
    return make();
  } catch (const UsageError&) {
    throw;  // the message already names the flag
  } catch (const Error& error) {
    wrong_usage(shown_flag(flag), ": ", error.what());
  }
}

struct CliFlag {
  std::string name;                // without dashes
  std::string placeholder;         // placeholder of the value in the help; empty for a switch
  std::string help;                // one line
  std::string default_value = {};  // empty: the option has no default
  bool repeats = false;
  std::string group = "options";  // heading in the help under which the option is listed
  bool rare = false;              // shown by `--help all` only
  /// If several tasks share this option: its meaning in each task, shown in that task's help.
  std::map<std::string, std::string> of_tasks = {};
};

/// Returns the flags with another text in the help for the default of the flag `name`. Parsing then
/// has no default for the flag.
std::vector<CliFlag> show_default(std::vector<CliFlag> flags, std::string_view name,
                                  std::string_view shown);

/// The given option, marked to be shown by `--help all` only.
CliFlag rarely(CliFlag option);

/// The arguments after the command's name, checked against the command's options.
class Arguments {
 public:
  bool flag(std::string_view name) const;  // true if the switch was given
  // True if the option was given on the command line. False if its value is the default.
  bool given(std::string_view name) const;
  /// The value of an option. Throws UsageError if the option was not given and has no default.
  const std::string& word(std::string_view name) const;
  /// All values of an option that may be repeated.
  const std::vector<std::string>& words(std::string_view name) const;
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  double number(std::string_view name, double low, double high) const;
  /// A copy of the arguments without the option `name`.
  Arguments without(std::string_view name) const;
  /// The plain arguments, which are neither options nor values of options, in order.
  const std::vector<std::string>& plain() const { return plain_; }
  /// The plain arguments after "--".
  std::span<const std::string> after_dashes() const {
    return std::span(plain_).last(after_dashes_);
  }
  bool empty() const { return given_.empty() && plain_.empty(); }
  bool json() const { return flag("json"); }

 private:
  friend struct Command;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::set<std::string, std::less<>> given_;
  std::vector<std::string> plain_;
  std::size_t after_dashes_ = 0;
};

/// A command of the program. A file of apps/commands/ creates and registers it, and no other code
/// refers to it.
struct Command {
  std::string name;
  std::string summary;             // one line for the list of commands
  std::vector<std::string> usage;  // forms of the arguments, one per line
  std::vector<CliFlag> options;
  std::vector<std::string> examples;  // example command lines without the leading "longhand"
  std::string notes = {};             // further text of the help
  bool takes_words = false;           // allow arguments that are not options
  /// Runs the command. A thrown UsageError gives exit status 2, another Error exit status 1.
  std::function<void(const Arguments&)> run;

  Arguments parse(const std::vector<std::string>& words) const;
  /// The text of --help. `beside` are the other arguments on the command line. If they name a task,
  /// the options of this task are listed too. If they contain the word `all`, every option is
  /// listed. Headings are bold if `rich`. Lines of options have at most 80 characters. If
  /// `terminal_columns` is not 0, options and notes fit this number of columns.
  std::string help(const Arguments& beside = {}, bool rich = false,
                   std::size_t terminal_columns = 0) const;
  /// Names that other programs use for options of this command and that are accepted here, each
  /// paired with the option's own name.
  std::vector<std::pair<std::string, std::string>> aliases() const;
  /// The ways to write the command, one per line.
  std::string forms() const;
};

/// Constructing a Register before main() adds the command to commands().
struct Register {
  explicit Register(Command command);
};

const std::map<std::string, Command, std::less<>>& commands();

/// Joins a command's own options with shared ones.
std::vector<CliFlag> join(std::vector<CliFlag> first, const std::vector<CliFlag>& second);

/// The option --json, which commands that print a report have.
CliFlag json_option();

/// Parses a number between low and high. Throws a UsageError that names `subject` if the text is
/// not such a number.
std::int64_t parse_integer(std::string_view subject, std::string_view text, std::int64_t low,
                           std::int64_t high);

double parse_number(std::string_view subject, std::string_view text, double low, double high);

}  // namespace longhand::app
