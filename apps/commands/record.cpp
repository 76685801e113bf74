#include <iostream>

#include "apps/command.h"
#include "apps/recipes/results_page.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace longhand::app::record_command {
namespace {

namespace fs = std::filesystem;

/// Rewrites a block of a file; whether it changed.
bool rewrite(const fs::path& file, std::string_view block, const std::string& content) {
  const std::string before = read_text(file, 16U << 20);
  std::string after;
  try {
    after = replace_block(before, block, content);
  } catch (const Error& error) {
    throw Error(text(printable(file.string()), ": ", error.what()));
  }
  if (after == before) return false;
  write_atomically(file, after);
  return true;
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected the folder of the results");
  const fs::path folder = arguments.plain()[0];
  const auto results = results_in(folder);
  Report report({{"file", "file"}, {"changed", "changed"}});
  const auto note = [&](const fs::path& file, bool changed) {
    report.add({{"file", file.string()}, {"changed", changed}});
  };
  const fs::path index = folder / "README.md";
  note(index, rewrite(index, "results", index_table(results)));
  if (arguments.given("readme")) {
    const fs::path readme = arguments.word("readme");
    const fs::path from = readme.has_parent_path() ? readme.parent_path() : fs::path(".");
    const std::string link = fs::relative(folder, from).generic_string() + "/";
    note(readme, rewrite(readme, "papers and ours", paper_table(results, link)));
  }
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "record",
     .summary = "writes the index of a folder of results pages anew, and a README's table",
     .usage = {"FOLDER [--readme FILE]"},
     .options = {{"readme", "FILE", "also the block \"papers and ours\" of this file"},
                 json_option()},
     .examples = {"record docs/results --readme README.md"},
     .notes = "Pages are written by `longhand repro RECIPE --page FILE.md`.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::record_command
