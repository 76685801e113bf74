#include <algorithm>
#include <iostream>
#include <optional>

#include "apps/command.h"

namespace longhand::app::completion_command {
namespace {

using Words = std::vector<std::string>;

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// The possible values of an option if its help lists them, as in "precision of products: exact,
/// fast or bf16 (fast)". Empty if the help contains no list.
Words values_of(const CliFlag& option) {
  if (option.placeholder == "0|1") return {"0", "1"};
  if (option.placeholder != "NAME" && option.placeholder != "MODE" && option.placeholder != "TYPE")
    return {};
  std::string list = option.help;
  if (const auto after = list.find(": "); after != std::string::npos) list.erase(0, after + 2);
  list.resize(std::min({list.find(" ("), list.find(';'), list.size()}));
  Words values;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(", "), list.size());
    const std::size_t end = std::min(comma, list.find(" or "));
    const std::string word = list.substr(0, end);
    if (!is_word(word)) return {};
    values.push_back(word);
    list.erase(0, end == list.size() ? end : end + (end == comma ? 2 : 4));
  }
  return values.size() > 1 ? values : Words();
}

bool is_path(const CliFlag& option) {
  return option.placeholder == "FILE" || option.placeholder == "DIR" ||
         option.placeholder == "RUN" || option.placeholder == "FOLDER";
}

std::string joined(const Words& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " ") + word;
  return all;
}

Words command_names() {
  Words names;
  for (const auto& [name, command] : commands()) names.push_back(name);
  names.emplace_back("help");
  return names;
}

/// Text to be placed between single quotes in a shell script. Characters that would end the
/// quotation are removed.
std::string quoted(std::string text, std::string_view without = "") {
  std::erase_if(text, [&](char c) { return c == '\'' || without.find(c) != std::string::npos; });
  constexpr std::size_t longest = 100;
  if (text.size() > longest) text = text.substr(0, text.rfind(' ', longest)) + " ...";
  return "'" + text + "'";
}

void bash() {
  constexpr const char* files =
      "compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$current\"); ";
  std::cout << "# bash completion for longhand; `longhand completion bash` printed it.\n"
               "_longhand() {\n"
               "  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
               "  local flags=\n"
               "  COMPREPLY=()\n"
               "  if [ \"$COMP_CWORD\" = 1 ] || [ \"${COMP_WORDS[1]} $COMP_CWORD\" = 'help 2' ]; "
               "then\n"
               "    COMPREPLY=($(compgen -W '"
            << joined(command_names())
            << "' -- \"$current\"))\n    return\n  fi\n  case ${COMP_WORDS[1]} in\n";
  for (const auto& [name, command] : commands()) {
    Words flags{"--help"};
    std::cout << "    " << name << ")\n      case $before in\n";
    for (const CliFlag& option : command.options) {
      const std::string flag = shown_flag(option.name);
      flags.push_back(flag);
      if (option.placeholder.empty()) continue;
      const Words values = values_of(option);
      std::cout << "        " << flag << ") ";
      if (is_path(option)) {
        std::cout << files;
      } else if (!values.empty()) {
        std::cout << "COMPREPLY=($(compgen -W '" << joined(values) << "' -- \"$current\")); ";
      }
      std::cout << "return ;;\n";
    }
    std::cout << "      esac\n      flags='" << joined(flags) << "' ;;\n";
  }
  std::cout << "  esac\n"
               "  case $current in\n"
               "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$current\")) ;;\n"
               "    *) "
            << files
            << ";;\n"
               "  esac\n"
               "}\n"
               "complete -F _longhand longhand\n";
}

void zsh() {
  std::cout << "#compdef longhand\n"
               "# zsh completion for longhand; `longhand completion zsh` printed it.\n"
               "_longhand() {\n"
               "  if (( CURRENT == 2 )); then\n"
               "    local -a names=(\n";
  for (const auto& [name, command] : commands()) {
    std::cout << "      " << quoted(name + ":" + command.summary) << '\n';
  }
  std::cout << "    )\n    _describe command names\n    return\n  fi\n  shift words\n"
               "  (( CURRENT-- ))\n  case $words[1] in\n";
  for (const auto& [name, command] : commands()) {
    std::cout << "    " << name << ") _arguments '--help[print the help]'";
    for (const CliFlag& option : command.options) {
      std::string line = (option.repeats ? "*" : "") + shown_flag(option.name) + "[" +
                         quoted(option.help, "[]:'\\").substr(1);
      line.back() = ']';
      if (!option.placeholder.empty()) {
        const Words values = values_of(option);
        line += ":" + option.placeholder + ":";
        if (is_path(option)) line += "_files";
        if (!values.empty()) line += "(" + joined(values) + ")";
      }
      std::cout << " \\\n      '" << line << '\'';
    }
    if (command.takes_words) std::cout << " \\\n      '*:word:_files'";
    std::cout << " ;;\n";
  }
  std::cout << "  esac\n}\n"
               "if [ \"$funcstack[1]\" = _longhand ]; then\n"
               "  _longhand \"$@\"\n"
               "else\n"
               "  compdef _longhand longhand\n"
               "fi\n";
}

void fish() {
  std::cout << "# fish completion for longhand; `longhand completion fish` printed it.\n";
  for (const auto& [name, command] : commands()) {
    std::cout << "complete -c longhand -f -n __fish_use_subcommand -a " << name << " -d "
              << quoted(command.summary, "\\") << '\n';
  }
  for (const auto& [name, command] : commands()) {
    const std::string here =
        "complete -c longhand -n '__fish_seen_subcommand_from " + name + "' -l ";
    for (const CliFlag& option : command.options) {
      const Words values = values_of(option);
      std::cout << here << shown_flag(option.name).substr(2);
      if (!option.placeholder.empty()) std::cout << (is_path(option) ? " -r -F" : " -x");
      if (!values.empty()) std::cout << " -a '" << joined(values) << '\'';
      std::cout << " -d " << quoted(option.help, "\\") << '\n';
    }
  }
}

void run(const Arguments& arguments) {
  const Words& words = arguments.plain();
  if (words == Words{"bash"}) return bash();
  if (words == Words{"zsh"}) return zsh();
  if (words == Words{"fish"}) return fish();
  wrong_usage("expected bash, zsh or fish");
}

const Register command{
    {.name = "completion",
     .summary = "prints a shell script that completes the commands and options of longhand",
     .usage = {"bash|zsh|fish"},
     .options = {},
     .examples = {"completion bash > ~/.local/share/bash-completion/completions/longhand",
                  "completion fish > ~/.config/fish/completions/longhand.fish"},
     .notes = "Run `source <(longhand completion bash)` to complete commands in the current\n"
              "bash. The command `cmake --install` installs the scripts for all three shells.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::completion_command
