#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/recipes/recipe.h"
#include "core/json.h"

/// Pages of results: what a recipe gave, as Markdown for a repository, and the same figures as
/// JSON.
namespace longhand::app {

/// How a recipe's figures were made.
struct Provenance {
  std::string recipe, summary, scale, command, commit, date, machine;
  std::uint64_t seed = 1;  // the first
  std::int64_t seeds = 1;
  double hours = 0;  // of training, all runs together
};

/// Writes PAGE.md, PAGE.json and, in a folder `files` beside them, the page's pictures and long
/// listings as PAGE-1.svg and PAGE-1.txt. What stands between notes_begin and notes_end in a page
/// that is there already is kept.
void write_results_page(const std::filesystem::path& page, const Provenance& made,
                        const RecipeResult& result);

constexpr std::string_view notes_begin = "<!-- notes: kept when this page is written again -->\n";
constexpr std::string_view notes_end = "<!-- end of notes -->\n";

/// Pictures past this many bytes are left out of a page, which says so.
constexpr std::size_t largest_picture = 100'000;

/// The figures of a page's JSON beside the paper's, as the table that stands in the page. Where
/// figures are of several runs, each one's, or of more than a few the least and the greatest.
std::string figures_table(const Json& results);
/// A page with that table in the place of its own.
std::string with_figures_table(std::string_view page, const Json& results);

/// A file of such a folder that holds verdicts and no page's figures.
constexpr std::string_view claims_file = "claims.json";

/// The results that a folder holds, by the names of their pages.
std::map<std::string, Json> results_in(const std::filesystem::path& folder);

/// A line for each of them: page, recipe, seeds, hours.
std::string index_table(const std::map<std::string, Json>& results);
/// A line for each figure that the paper has too. Links lead into `folder`.
std::string paper_table(const std::map<std::string, Json>& results, std::string_view folder);

/// A text with what stands between "<!-- NAME -->" and "<!-- end of NAME -->" replaced; refused
/// where it has no such place.
std::string replace_block(std::string_view text, std::string_view name, std::string_view content);

}  // namespace longhand::app
