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

/// How a recipe's results were made.
struct Provenance {
  std::string recipe, summary, scale, command, commit, date, machine;
  std::uint64_t seed = 1;  // seed of the first run
  std::int64_t seeds = 1;
  double hours = 0;  // total training time of all runs
};

/// Writes PAGE.md, PAGE.json and, in a folder `files` next to them, the page's pictures and long
/// listings as PAGE-1.svg and PAGE-1.txt. If the page exists, its hand-written block between
/// notes_begin and notes_end is kept.
void write_results_page(const std::filesystem::path& page, const Provenance& made,
                        const RecipeResult& result);

constexpr std::string_view notes_begin = "<!-- notes: kept when this page is written again -->\n";
constexpr std::string_view notes_end = "<!-- end of notes -->\n";

/// Maximum bytes of a picture on a page. A larger picture is replaced by a note.
constexpr std::size_t largest_picture = 100'000;

/// The table of a page: the numbers in its JSON next to the paper's numbers. With several runs, the
/// table shows each run's value. With many runs, it shows their range.
std::string figures_table(const Json& results);
/// Returns the page with its table replaced by figures_table(results).
std::string with_figures_table(std::string_view page, const Json& results);

/// The file in a results folder that contains the verdicts on claims. All other JSON files there
/// contain the results of a recipe.
constexpr std::string_view claims_file = "claims.json";

/// The JSON of all results pages in a folder; key: the page's name.
std::map<std::string, Json> results_in(const std::filesystem::path& folder);

/// A table with one line per page: page, recipe, seeds, hours.
std::string index_table(const std::map<std::string, Json>& results);
/// A table with one line per result that the paper also reports. Links lead into `folder`.
std::string paper_table(const std::map<std::string, Json>& results, std::string_view folder);

/// Replaces the text between "<!-- NAME -->" and "<!-- end of NAME -->". Throws an Error if one of
/// these markers is missing.
std::string replace_block(std::string_view text, std::string_view name, std::string_view content);

}  // namespace longhand::app
