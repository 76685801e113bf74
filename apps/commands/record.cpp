#include <iostream>
#include <vector>

#include "apps/command.h"
#include "apps/recipes/claims.h"
#include "apps/recipes/results_page.h"
#include "core/atomic_file.h"
#include "core/commas.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace longhand::app::record_command {
namespace {

namespace fs = std::filesystem;

/// Replaces the text of a file by the result of make(text). Returns true if the text changed.
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

std::vector<fs::path> files_of(std::string_view list) {
  const std::vector<std::string_view> names = at_commas(list);
  return {names.begin(), names.end()};
}

/// The path from the folder of `file` to `folder`. A link from `file` to a page of `folder`
/// consists of this path and the name of the page.
std::string link_from(const fs::path& file, const fs::path& folder) {
  const fs::path from = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const std::string link = fs::relative(folder, from).generic_string();
  return link == "." ? "" : link + "/";
}

void run(const Arguments& arguments) {
  if (arguments.plain().size() != 1) {
    wrong_usage("expected the folder with the results pages, such as docs/results");
  }
  const fs::path folder = arguments.plain()[0];
  const auto results = results_in(folder);
  Report report({{"file", "file"}, {"changed", "changed"}});
  const auto note = [&](const fs::path& file, bool changed) {
    report.add({{"file", file.string()}, {"changed", changed}});
  };
  for (const auto& result : results) {
    const fs::path page = folder / (result.first + ".md");
    const Json& figures = result.second;
    if (figures["rows"].elements().empty()) continue;
    note(page, change(page, [&](std::string_view before) {
           return with_figures_table(before, figures);
         }));
  }
  const fs::path index = folder / "README.md";
  note(index, rewrite(index, "results", index_table(results)));
  const fs::path figures = folder / "figures.md";
  if (fs::exists(figures)) {
    note(figures, rewrite(figures, "papers and ours", paper_table(results, "")));
  }
  const std::vector<JudgedClaim> judged = judge_all(results);
  const fs::path verdicts = folder / claims_file;
  const std::string json = claims_json(judged).dump(1) + "\n";
  const bool same = fs::exists(verdicts) && read_text(verdicts, 16U << 20) == json;
  if (!same) write_atomically(verdicts, json);
  note(verdicts, !same);
  if (arguments.given("claims")) {
    for (const fs::path& file : files_of(arguments.word("claims"))) {
      note(file, rewrite(file, "claims", claims_board(judged, link_from(file, folder))));
    }
  }
  report.print(std::cout, arguments.json());
}

const Register command{
    {.name = "record",
     .summary = "updates the result tables in a folder, and judges the claims of papers by them",
     .usage = {"FOLDER [--claims FILE,FILE]"},
     .options = {{"claims", "LIST", "Markdown files in which to replace the table of claims"},
                 json_option()},
     .examples = {"record docs/results --claims README.md,docs/papers.md"},
     .notes = "A results page consists of PAGE.md and PAGE.json. `longhand repro RECIPE --page\n"
              "PAGE.md` writes both files. A claim is a statement of a paper about its results.\n"
              "Its verdict is one of: shown, in part, not yet.\n"
              "`longhand record` makes the table in each PAGE.md again from PAGE.json. It\n"
              "computes the verdict on each claim from the numbers of all pages, and writes the\n"
              "verdicts to FOLDER/claims.json. It also updates the index in FOLDER/README.md\n"
              "and, if it exists, the table in FOLDER/figures.md.\n"
              "--claims names files such as README.md. In each of them, the command replaces\n"
              "the text between <!-- claims --> and <!-- end of claims --> by a table of the\n"
              "claims.",
     .takes_words = true,
     .run = run}};

}  // namespace
}  // namespace longhand::app::record_command
