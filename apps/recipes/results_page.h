#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/recipe.h"
#include "core/json.h"

/// Results pages: the output of a recipe as Markdown for a repository, and the same figures as
/// JSON.
namespace longhand::app {

/// The origin of a recipe's figures.
struct Provenance {
  std::string recipe, summary, scale, command, commit, date, machine;
  std::uint64_t seed = 1;  // the first seed
  std::int64_t seeds = 1;
  double hours = 0;  // training time of all runs together
};

/// Writes PAGE.md, PAGE.json and, in a folder `files` next to them, the page's pictures and long
/// listings as PAGE-1.svg and PAGE-1.txt. The part between notes_begin and notes_end of an existing
/// page is kept.
void write_results_page(const std::filesystem::path& page, const Provenance& made,
                        const RecipeResult& result);

constexpr std::string_view notes_begin = "<!-- notes: kept when this page is written again -->\n";
constexpr std::string_view notes_end = "<!-- end of notes -->\n";

/// The largest picture on a page, in bytes. A larger one is replaced by a note.
constexpr std::size_t largest_picture = 100'000;

/// The table of a page, with the figures of its JSON next to the paper's. With several runs it
/// shows each run's figure, or the range if there are more than a few.
std::string figures_table(const Json& results);
/// The page with its table replaced by the table of these results.
std::string with_figures_table(std::string_view page, const Json& results);

/// The file in a results folder that contains verdicts instead of figures.
constexpr std::string_view claims_file = "claims.json";

/// All results in a folder, by page name.
std::map<std::string, Json> results_in(const std::filesystem::path& folder);

/// One line per page: page, recipe, seeds, hours.
std::string index_table(const std::map<std::string, Json>& results);
/// One line per figure that the paper also reports. Links point into `folder`.
std::string paper_table(const std::map<std::string, Json>& results, std::string_view folder);

/// Replaces the text between "<!-- NAME -->" and "<!-- end of NAME -->". Throws an Error if these
/// marks are missing.
std::string replace_block(std::string_view text, std::string_view name, std::string_view content);

}  // namespace longhand::app
