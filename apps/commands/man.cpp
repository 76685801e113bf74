#include <iostream>
#include <sstream>

#include "apps/command.h"
#include "apps/version.h"
#include "core/atomic_file.h"
#include "core/nearest.h"
#include "core/quote.h"

namespace longhand::app::man_command {
namespace {

/// Escapes text for roff, so that the text contains no roff requests or escapes.
std::string roff(std::string_view text) {
  std::string safe;
  bool fresh = true;  // true at the start of a line
  for (const char c : text) {
    if (fresh && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
    fresh = c == '\n';
  }
  return safe;
}

std::string heading(std::string_view name) {
  std::string title(name);
  for (char& c : title) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return title;
}

void begin(std::ostream& out, const std::string& name, std::string_view summary) {
  out << ".TH " << heading(name) << " 1 \"\" \"longhand " << version << "\" \"longhand\"\n"
      << ".SH NAME\n"
      << roff(name) << " \\- " << roff(summary) << '\n';
}

std::string page_of_program() {
  std::ostringstream out;
  begin(out, "longhand", "tensors, derivatives and training, written out by hand");
  out << ".SH SYNOPSIS\n.B longhand\n.I COMMAND\n[...]\n.SH COMMANDS\n";
  for (const auto& [name, command] : commands()) {
    out << ".TP\n.BR longhand\\-" << roff(name) << " (1)\n" << roff(command.summary) << '\n';
  }
  out << ".SH EXIT STATUS\n0: success; 1: failure; 2: wrong usage; 128 + N: stopped by signal N\n"
         ".SH ENVIRONMENT\n.TP\n.B LONGHAND_CPU\ninstruction set to use\n"
         ".TP\n.B NO_COLOR\nif not empty, print plain text without colors\n";
  return out.str();
}

std::string page_of(const Command& command) {
  std::ostringstream out;
  begin(out, "longhand-" + command.name, command.summary);
  out << ".SH SYNOPSIS\n";
  for (const std::string& form : command.usage) {
    out << ".B longhand " << roff(command.name) << "\n" << roff(form) << "\n.br\n";
  }
  std::vector<std::string> groups;
  for (const CliFlag& option : command.options) {
    if (std::find(groups.begin(), groups.end(), option.group) == groups.end()) {
      groups.push_back(option.group);
    }
  }
  for (const std::string& group : groups) {
    out << ".SH " << heading(group == "options" ? group : group + " options") << '\n';
    for (const CliFlag& option : command.options) {
      if (option.group != group) continue;
      out << ".TP\n.B " << roff(shown_flag(option.name));
      if (!option.placeholder.empty()) out << " \\fI" << roff(option.placeholder) << "\\fR";
      out << '\n' << roff(option.help);
      if (!option.default_value.empty()) out << " (" << roff(option.default_value) << ')';
      out << '\n';
    }
  }
  if (const auto aliases = command.aliases(); !aliases.empty()) {
    out << ".SH ALIASES\n";
    for (const auto& [alias, name] : aliases) {
      out << ".TP\n.B " << roff(shown_flag(alias)) << "\nsame as " << roff(shown_flag(name))
          << '\n';
    }
  }
  if (!command.notes.empty()) out << ".SH NOTES\n" << roff(command.notes) << '\n';
  out << ".SH EXAMPLES\n.nf\n";
  for (const std::string& example : command.examples) out << "longhand " << roff(example) << '\n';
  out << ".fi\n.SH SEE ALSO\n.BR longhand (1)\n";
  return out.str();
}

void write_all(const std::filesystem::path& path) {
  const Folder folder = Folder::make(path);
  write_atomically(folder, "longhand.1", page_of_program());
  for (const auto& [name, command] : commands()) {
    write_atomically(folder, "longhand-" + name + ".1", page_of(command));
  }
}

void run(const Arguments& arguments) {
  const std::vector<std::string>& words = arguments.plain();
  if (words.size() > 1) wrong_usage("expected one command");
  if (arguments.given("out")) {
    if (!words.empty())
      wrong_usage(
          "--out cannot be combined with a command, because --out writes the pages of all "
          "commands");
    return write_all(arguments.word("out"));
  }
  if (words.empty()) {
    std::cout << page_of_program();
    return;
  }
  const auto found = commands().find(words[0]);
  if (found == commands().end()) {
    std::vector<std::string> known;
    for (const auto& [name, command] : commands()) known.push_back(name);
    wrong_usage("there is no command ", quote(words[0]), did_you_mean(words[0], known));
  }
  std::cout << page_of(found->second);
}

const Register command{
    {.name = "man",
     .summary = "prints the manual page of a command, or writes all pages to a folder",
     .usage = {"[COMMAND]", "--out DIR"},
     .options = {{"out", "DIR", "write the pages of all commands to this folder"}},
     .examples = {"man train | man -l -", "man --out ~/.local/share/man/man1"},
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::man_command
