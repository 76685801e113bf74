#include "apps/version.h"

#include <iostream>

#include "apps/command.h"
#include "apps/report.h"

namespace longhand::app::version_command {
namespace {

void run(const Arguments& arguments) {
  if (arguments.json()) {
    std::cout << Json{{"version", version},
                      {"commit", commit},
                      {"compiler", compiler},
                      {"build", build}}
              << '\n';
    return;
  }
  std::cout << "longhand " << version << " (" << build << ", " << compiler << ", commit " << commit
            << ")\n";
}

const Register command{
    {.name = "version",
     .summary = "prints the program's version and build",
     .usage = {"[--json]"},
     .options = {json_option()},
     .examples = {"version"},
     .notes = "`longhand info` also prints facts about the machine, such as processor and memory.",
     .run = run}};

}  // namespace
}  // namespace longhand::app::version_command
