#include "apps/recipes/results_page.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/html/markdown.h"
#include "apps/html/svg.h"
#include "apps/recipes/chance.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/quote.h"
#include "core/text_file.h"

namespace longhand::app {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t largest_page = 16U << 20;
/// If a table has more rows than this, it is moved to the end of the page, so that the page starts
/// with its main results.
constexpr std::ptrdiff_t many_rows = 60;

std::string figure_text(const Json& value, bool whole) {
  return value.is_null() ? "-" : html::decimals(value.number(), whole ? 0 : 3);
}

bool is_whole(const Json& row) {
  const Json* const whole = row.find("whole");
  return whole && whole->boolean();
}

std::string interval_text(const Json& row) {
  if (row["low"].is_null() || row["high"].is_null()) return "";
  return text(figure_text(row["low"], false), " to ", figure_text(row["high"], false));
}

Json to_json(const Provenance& made, const RecipeResult& result) {
  const auto figure = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  Json rows = Json::array();
  for (const Row& row : result.rows) {
    Json one{{"row", row.row},          {"column", row.column},     {"value", row.value},
             {"low", figure(row.low)},  {"high", figure(row.high)}, {"paper", figure(row.paper)},
             {"in_table", row.in_table}};
    if (row.whole) one["whole"] = true;
    rows.push_back(std::move(one));
  }
  return Json{{"recipe", made.recipe},
              {"summary", made.summary},
              {"scale", made.scale},
              {"command", made.command},
              {"seed", made.seed},
              {"seeds", made.seeds},
              {"commit", made.commit},
              {"date", made.date},
              {"machine", made.machine},
              {"hours", made.hours},
              {"interval", name_of(result.bounds)},
              {"rows", std::move(rows)}};
}

/// The values of single runs. Key: the row and column of a cell of a results table that shows the
/// mean or median of several runs. Value: one JSON object per run, in the order of the runs.
using RunFigures = std::map<std::pair<std::string, std::string>, std::vector<const Json*>>;

/// Finds the JSON objects that contain the values of single runs. Their columns are named "COLUMN,
/// run 1", "COLUMN, run 2" and so on. They have "in_table": false, so the table does not show them
/// as rows.
RunFigures run_figures(const Json& results) {
  RunFigures all;
  for (const Json& row : results["rows"].elements()) {
    if (row["in_table"].boolean()) continue;
    const std::string column = row["column"].string();
    const std::size_t at = column.rfind(", run ");
    if (at == std::string::npos) continue;
    all[{row["row"].string(), column.substr(0, at)}].push_back(&row);
  }
  return all;
}

std::string runs_text(const RunFigures& runs, const Json& row) {
  constexpr std::size_t few = 4;
  const auto found = runs.find({row["row"].string(), row["column"].string()});
  if (found == runs.end()) return "";
  const auto text_of = [](const Json* run) { return figure_text((*run)["value"], is_whole(*run)); };
  const std::vector<const Json*>& rows = found->second;
  if (rows.size() > few) {
    const auto [least, most] =
        std::ranges::minmax(rows, {}, [](const Json* run) { return (*run)["value"].number(); });
    return text_of(least) + " to " + text_of(most);
  }
  std::string all;
  for (const Json* run : rows) all += (all.empty() ? "" : ", ") + text_of(run);
  return all;
}

std::string seeds_text(const Json& results) {
  const std::int64_t first = results["seed"].integer(), count = results["seeds"].integer();
  return count == 1 ? text("seed ", first) : text("seeds ", first, " to ", first + count - 1);
}

std::string hours_text(double hours) {
  if (hours < 1.0 / 60) return text(html::decimals(3600 * hours, 0), " s");
  return hours < 1 ? text(html::decimals(60 * hours, 0), " min")
                   : text(html::decimals(hours, 1), " h");
}

/// Returns the hand-written block of a page, including the markers at its beginning and end. If the
/// page has no such block, returns only the two markers.
std::string notes_of(const fs::path& page) {
  const std::string empty = text(notes_begin, notes_end);
  if (!fs::exists(page)) return empty;
  const std::string old = read_text(page, largest_page);
  const std::size_t begin = old.find(notes_begin);
  if (begin == std::string::npos) return empty;
  const std::size_t end = old.find(notes_end, begin);
  LONGHAND_CHECK(end != std::string::npos, printable(page.string()), ": expected the line ",
                 notes_end.substr(0, notes_end.size() - 1),
                 " after the hand-written notes, but this line is missing");
  return old.substr(begin, end + notes_end.size() - begin);
}

}  // namespace

std::string figures_table(const Json& results) {
  const RunFigures runs = run_figures(results);
  const auto chance = [&](const Json& row) {
    return chance_of(results["recipe"].string(), row["row"].string(), row["column"].string());
  };
  const bool chances = std::ranges::any_of(results["rows"].elements(), [&](const Json& row) {
    return row["in_table"].boolean() && chance(row);
  });
  std::vector<std::vector<std::string>> lines{
      {"", "", "ours", html::markdown_escape(results["interval"].string())}};
  if (!runs.empty()) lines.front().emplace_back("runs");
  if (chances) lines.front().emplace_back("chance");
  lines.front().emplace_back("paper");
  for (const Json& row : results["rows"].elements()) {
    if (!row["in_table"].boolean()) continue;
    std::vector<std::string>& line = lines.emplace_back();
    line = {html::markdown_escape(row["row"].string()),
            html::markdown_escape(row["column"].string()), figure_text(row["value"], is_whole(row)),
            interval_text(row)};
    if (!runs.empty()) line.push_back(runs_text(runs, row));
    if (chances) line.push_back(chance(row) ? figure_text(*chance(row), false) : "");
    line.push_back(figure_text(row["paper"], is_whole(row)));
  }
  return html::markdown_table(lines);
}

std::string with_figures_table(std::string_view page, const Json& results) {
  const std::string table = figures_table(results);
  const std::string_view header = "\n|  |  | ours |";
  const std::size_t begin = page.find(header);
  LONGHAND_CHECK(begin != std::string_view::npos,
                 "expected a page with a table of results, got a page without a table");
  std::size_t end = begin + 1;
  while (end < page.size() && page[end] == '|') {
    end = std::min(page.size(), page.find('\n', end)) + 1;
  }
  return text(page.substr(0, begin + 1), table, page.substr(std::min(end, page.size())));
}

void write_results_page(const fs::path& page, const Provenance& made, const RecipeResult& result) {
  const std::string name = page.stem().string();
  const Json results = to_json(made, result);
  std::string whole =
      text("# ", made.recipe, ", ", made.scale, " scale\n\n", html::markdown_escape(made.summary),
           ".\n\n```sh\n", made.command, "\n```\n\n", seeds_text(results), ", commit ",
           made.commit.substr(0, 10), ", ", made.date, ", ", html::markdown_escape(made.machine),
           "; ", hours_text(made.hours), " of training.\n\n");
  const bool table_last = std::ranges::count_if(result.rows, &Row::in_table) > many_rows;
  const std::string figures = result.rows.empty() ? "" : figures_table(results) + "\n";
  whole += text(table_last ? "" : figures, notes_of(page), "\n");

  std::vector<std::string> pictures, listings;
  for (const auto& [heading, content] : result.sections) {
    const std::size_t first_picture = pictures.size(), first_listing = listings.size();
    const html::Markdown section = html::markdown(
        content, {.picture =
                      [&](std::size_t i) {
                        return text("files/", name, '-', first_picture + i + 1, ".svg");
                      },
                  .listing =
                      [&](std::size_t i) {
                        return text("files/", name, '-', first_listing + i + 1, ".txt");
                      }});
    whole += text("## ", html::markdown_escape(heading), "\n\n", section.text);
    pictures.insert(pictures.end(), section.pictures.begin(), section.pictures.end());
    listings.insert(listings.end(), section.listings.begin(), section.listings.end());
  }

  if (table_last) whole += text("## All figures\n\n", figures);

  fs::path files = page.parent_path() / "files";
  if (!pictures.empty() || !listings.empty()) fs::create_directories(files);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const std::string file = text(name, '-', i + 1, ".svg");
    if (pictures[i].size() <= largest_picture) {
      write_atomically(files / file, pictures[i]);
      continue;
    }
    const std::string reference = text("![](files/", file, ")");
    whole.replace(whole.find(reference), reference.size(),
                  text("(A picture of ", pictures[i].size() / 1000,
                       " kB, omitted here: it is in the report that the command writes.)"));
  }
  for (std::size_t i = 0; i < listings.size(); ++i) {
    write_atomically(files / text(name, '-', i + 1, ".txt"), listings[i]);
  }
  while (whole.ends_with("\n\n")) whole.pop_back();
  write_atomically(fs::path(page).replace_extension(".json"), results.dump(1) + "\n");
  write_atomically(page, whole);
}

std::map<std::string, Json> results_in(const fs::path& folder) {
  std::map<std::string, Json> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().filename() == claims_file) continue;
    std::optional<Json> results = Json::parse(read_text(entry.path(), largest_page));
    LONGHAND_CHECK(results && results->is_object() && results->find("rows"),
                   printable(entry.path().string()),
                   ": expected the JSON object of a results page, with the member \"rows\"");
    all.emplace(entry.path().stem().string(), std::move(*results));
  }
  return all;
}

std::string index_table(const std::map<std::string, Json>& all) {
  std::vector<std::vector<std::string>> lines{{"page", "what", "scale", "seeds", "training"}};
  for (const auto& [page, results] : all) {
    lines.push_back(
        {text("[", page, ".md](", page, ".md)"), html::markdown_escape(results["summary"].string()),
         html::markdown_escape(results["scale"].string()),
         std::to_string(results["seeds"].integer()), hours_text(results["hours"].number())});
  }
  return html::markdown_table(lines);
}

std::string paper_table(const std::map<std::string, Json>& all, std::string_view folder) {
  std::vector<std::vector<std::string>> lines{{"", "", "ours", "95%", "runs", "paper", "page"}};
  for (const auto& [page, results] : all) {
    const RunFigures runs = run_figures(results);
    const std::string interval = results["interval"].string();
    const std::string kind = interval == name_of(Bounds::confidence)
                                 ? ""
                                 : text(" (", html::markdown_escape(interval), ")");
    for (const Json& row : results["rows"].elements()) {
      if (!row["in_table"].boolean() || row["paper"].is_null()) continue;
      lines.push_back(
          {html::markdown_escape(row["row"].string()),
           html::markdown_escape(row["column"].string()), figure_text(row["value"], is_whole(row)),
           interval_text(row) + kind, runs_text(runs, row),
           figure_text(row["paper"], is_whole(row)),
           text("[", html::markdown_escape(results["recipe"].string()), ", ",
                html::markdown_escape(results["scale"].string()), "](", folder, page, ".md)")});
    }
  }
  return html::markdown_table(lines);
}

std::string replace_block(std::string_view whole, std::string_view name, std::string_view content) {
  const std::string begin = text("<!-- ", name, " -->\n"), end = text("<!-- end of ", name, " -->");
  const std::size_t from = whole.find(begin);
  const std::size_t to = from == std::string_view::npos ? from : whole.find(end, from);
  LONGHAND_CHECK(to != std::string_view::npos, "expected a page with the marker lines ",
                 quote(begin.substr(0, begin.size() - 1)), " and ", quote(end));
  return text(whole.substr(0, from + begin.size()), content, whole.substr(to));
}

}  // namespace longhand::app
