#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <new>

#include "apps/command.h"
#include "apps/terminal.h"
#include "apps/version.h"
#include "core/bus_errors.h"
#include "core/exception_message.h"
#include "core/nearest.h"
#include "core/parallel.h"
#include "core/quote.h"
#include "nn/ranks/transport.h"
#include "nn/training/stop_signals.h"

namespace longhand::app {
namespace {

constexpr int done = 0, failed = 1, misused = 2;

bool rich_output() { return is_rich_terminal(STDOUT_FILENO); }

void print_overview() {
  constexpr std::size_t columns_of_files = 120;
  const std::size_t terminal = table_columns(STDOUT_FILENO);
  const std::size_t columns = terminal == 0 ? columns_of_files : terminal;
  write_wrapped(
      std::cout,
      text("longhand ", version, ": tensors, derivatives and training, written out by hand"), 0, 0,
      columns);
  std::cout << '\n' << bold("commands", rich_output()) << '\n';
  std::size_t width = 4;
  for (const auto& [name, command] : commands()) width = std::max(width, name.size());
  for (const auto& [name, command] : commands()) {
    std::cout << "  " << std::left << std::setw(static_cast<int>(width)) << name << "  ";
    write_wrapped(std::cout, command.summary, width + 4, width + 4, columns);
  }
  std::cout << '\n';
  write_wrapped(std::cout, "`longhand COMMAND --help` describes a command, with examples.", 0, 0,
                columns);
}

const Command& find(const std::string& name) {
  const auto found = commands().find(name);
  if (found == commands().end()) {
    std::vector<std::string> known;
    for (const auto& [other, command] : commands()) known.push_back(other);
    wrong_usage("there is no command ", quote(name),
                did_you_mean(name, known, "; `longhand help` lists them"));
  }
  return found->second;
}

void run(const std::vector<std::string>& words) {
  if (words.empty()) wrong_usage("expected a command; `longhand help` lists them");
  const std::string& first = words.front();
  if (first == "--version") {
    std::cout << "longhand " << version << '\n';
  } else if (first == "--help" || first == "-h" || (first == "help" && words.size() == 1)) {
    print_overview();
  } else if (first == "help") {
    if (words.size() > 2) wrong_usage("help: expected one command");
    std::cout << find(words[1]).help({}, rich_output(), table_columns(STDOUT_FILENO));
  } else {
    const Command& command = find(first);
    const Arguments arguments = command.parse({words.begin() + 1, words.end()});
    if (arguments.flag("help")) {
      std::cout << command.help(arguments, rich_output(), table_columns(STDOUT_FILENO));
    } else {
      command.run(arguments);
    }
  }
}

/// Prints an error as one line. The message may quote files or flags, so unprintable characters are
/// escaped.
int report(int status, std::string_view message, const std::vector<std::string>& words) {
  std::string who = "longhand";
  if (!words.empty() && commands().contains(words.front())) who += ' ' + words.front();
  std::cerr << alarming(who + ":", is_rich_terminal(STDERR_FILENO)) << ' ' << printable(message)
            << '\n';
  return status;
}

/// Opens each of the descriptors 0 to 2 that is closed. Otherwise a file that is opened later could
/// become standard error. Descriptor 0 is opened for writing, and 1 and 2 for reading, so using
/// them still fails.
void hold_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    const int held = ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY);
    // The error cannot be reported, because there is no descriptor for it.
    if (held != descriptor) std::_Exit(failed);
  }
}

int guarded(const std::vector<std::string>& words) {
  try {
    run(words);
    LONGHAND_CHECK(std::cout.flush(), "standard output cannot be written");
    const int signal = nn::StopSignals::raised();
    return signal == 0 ? done : 128 + signal;
  } catch (const UsageError& error) {
    const int status = report(misused, error.what(), words);
    // If the command line is only a command's name, the command's usage is printed too.
    if (words.size() == 1 && commands().contains(words[0])) {
      std::cerr << "usage\n" << commands().find(words[0])->second.forms();
    }
    return status;
  } catch (const nn::FailedElsewhere&) {  // another rank reports the error
    return failed;
  } catch (const std::bad_alloc&) {
    return report(failed, "out of memory", words);
  } catch (const std::exception& error) {
    return report(failed, message_of(error), words);
  }
}

}  // namespace
}  // namespace longhand::app

int main(int count, char** words) {
  longhand::limit_polling(words);
  longhand::app::hold_standard_streams();
  longhand::explain_bus_errors();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit then returns an error
  return longhand::app::guarded(
      std::vector<std::string>(words + std::min(count, 1), words + count));
}
