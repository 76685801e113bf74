#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/recipe.h"
#include "core/json.h"

/// Results pages: a recipe's results as a Markdown page for the repository, and the same numbers as
/// JSON.
namespace longhand::app {

/// The origin of a recipe's results: the command, the commit of the program, the date, the machine
/// and the seeds.
struct Provenance {
  std::string recipe, summary, scale, command, commit, date, machine;
  std::uint64_t seed = 1;  // seed of the first run
  std::int64_t seeds = 1;
  double hours = 0;  // total training time of all runs
};

/// Writes the files PAGE.md and PAGE.json. Pictures and long listings are written to a folder
/// `files` next to them, as PAGE-1.svg, PAGE-1.txt and so on. If PAGE.md exists, its hand-written
/// block between notes_begin and notes_end is kept.
void write_results_page(const std::filesystem::path& page, const Provenance& made,
                        const RecipeResult& result);

constexpr std::string_view notes_begin = "<!-- notes: kept when this page is written again -->\n";
constexpr std::string_view notes_end = "<!-- end of notes -->\n";

/// Maximum bytes of a picture on a page. A larger picture is replaced by a note.
constexpr std::size_t largest_picture = 100'000;

/// Makes the table of a results page from the page's JSON: our results next to the paper's. If
/// there are several runs, the table also shows the value of each run, or the range of these values
/// if there are more than four runs.
std::string figures_table(const Json& results);
/// Returns the page with its table replaced by figures_table(results).
std::string with_figures_table(std::string_view page, const Json& results);

/// The file in a results folder that states which claims of the papers the results confirm. Every
/// other JSON file in the folder contains the results of a recipe.
constexpr std::string_view claims_file = "claims.json";

/// The JSON of all results pages in a folder; key: the page's name.
std::map<std::string, Json> results_in(const std::filesystem::path& folder);

/// A table with one line per results page: link, summary, scale, number of seeds, and training
/// time.
std::string index_table(const std::map<std::string, Json>& results);
/// A table of all results that a paper also reports, one line each. The links to the results pages
/// begin with `folder`.
std::string paper_table(const std::map<std::string, Json>& results, std::string_view folder);

/// Replaces the text between "<!-- NAME -->" and "<!-- end of NAME -->". Throws an Error if one of
/// these markers is missing.
std::string replace_block(std::string_view text, std::string_view name, std::string_view content);

}  // namespace longhand::app
