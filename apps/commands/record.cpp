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

/// Rewrites a file; whether it changed.
template <class Make>
bool change(const fs::path& file, const Make& make) {
  const std::string before = read_text(file, 16U << 20);
  std::string after;
  try {
    after = make(before);
  } catch (const Error& error) {
    throw Error(text(printable(file.string()), ": ", error.what()));
  }
  if (after == before) return false;
  write_atomically(file, after);
  return true;
}

bool rewrite(const fs::path& file, std::string_view block, const std::string& content) {
  return change(file,
                [&](std::string_view before) { return replace_block(before, block, content); });
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) wrong_usage("expected the folder of the results");
  const fs::path folder = arguments.plain()[0];
  const auto results = results_in(folder);
  Report report({{"file", "file"}, {"changed", "changed"}});
  const auto note = [&](const fs::path& file, bool changed) {
    report.add({{"file", file.string()}, {"changed", changed}});
  };
  for (const auto& [name, figures] : results) {
    const fs::path page = folder / (name + ".md");
    if (figures["rows"].elements().empty()) continue;
    note(page, change(page, [&](std::string_view before) {
           return with_figures_table(before, figures);
         }));
  }
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
     .summary =
         "writes the tables of a folder of results pages anew, their index, and a README's table",
     .usage = {"FOLDER [--readme FILE]"},
     .options = {{"readme", "FILE", "also the block \"papers and ours\" of this file"},
                 json_option()},
     .examples = {"record docs/results --readme README.md"},
     .notes = "Pages are written by `longhand repro RECIPE --page FILE.md`.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::record_command
