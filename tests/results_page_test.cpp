#include "apps/recipes/results_page.h"

#include "apps/html/chart.h"
#include "apps/html/heat_table.h"
#include "apps/html/markdown.h"
#include "apps/recipes/claims.h"
#include "core/atomic_file.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

/// Tests of reports as Markdown, of the pages of docs/results, and of the tables made from them.
BOOST_AUTO_TEST_SUITE(results_page_test)

using namespace longhand::app;
using longhand::contains;
using longhand::contents;
namespace fs = std::filesystem;

namespace {

html::Markdown converted(const std::string& content) {
  return html::markdown(content,
                        {.picture = [](std::size_t i) { return longhand::text("p", i, ".svg"); },
                         .listing = [](std::size_t i) { return longhand::text("l", i, ".txt"); }});
}

const RecipeResult example{
    .rows = {{.row = "GPT_2",
              .column = "F(0.98)",
              .value = 0.25,
              .low = 0.125,
              .high = 0.5,
              .paper = 0.151},
             {.row = "GPT_2", .column = "F(0.98), run 1", .value = 0.2, .in_table = false},
             {.row = "GPT_2", .column = "F(0.98), run 2", .value = 0.3, .in_table = false},
             {.row = "rank", .column = "heads", .value = 7, .whole = true}},
    .sections = {
        {"What is counted", html::paragraph("Shares of a * b < c.")},
        {"Curves",
         html::figure(html::line_chart({.x_label = "step",
                                        .y_label = "loss",
                                        .series = {{.name = "loss", .points = {{0, 1}, {1, 2}}}}}),
                      "The loss")},
        {"Configurations", html::code(std::string(100, '\n'))}}};

Provenance made_by(const std::string& recipe) {
  return {.recipe = recipe,
          .summary = "an example",
          .scale = "laptop",
          .command = "longhand repro " + recipe,
          .commit = "0123456789abcdef",
          .date = "2026-01-02",
          .machine = "a machine",
          .seed = 1,
          .seeds = 3,
          .hours = 1.5};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_report_has_the_same_content_in_markdown) {
  const html::Markdown page = converted(
      html::paragraph("a <b> & *c*") +
      html::table({"", "ours"}, {{"x | y", "<b>0.5</b> <small>[0.4, 0.6]</small><br>paper"}}) +
      html::code("if (a < b)\n  c_d;") +
      html::figure("<svg width=\"3\"><text>1</text></svg>", "a caption"));
  BOOST_TEST(page.text ==
             "a &lt;b> &amp; \\*c\\*\n\n"
             "|  | ours |\n|---|---|\n| x \\| y | **0.5** \\[0.4, 0.6\\]<br>paper |\n\n"
             "```\nif (a < b)\n  c_d;\n```\n\n"
             "![](p0.svg)\n\na caption\n\n");
  BOOST_REQUIRE(page.pictures.size() == 1);
  BOOST_TEST(page.pictures[0].starts_with("<svg width=\"3\"><style>"));
  BOOST_TEST(contains(page.pictures[0], "prefers-color-scheme: dark"));
  BOOST_TEST(page.pictures[0].ends_with("</style><text>1</text></svg>"));
}

BOOST_AUTO_TEST_CASE(a_heading_over_several_columns_is_repeated_for_each_column) {
  const html::HeatTable table{
      .groups = {{"parity", {"ID", "2x"}}, {"copying", {"ID"}}},
      .rows = {{"rope", {{.text = "100", .small = "99 to 100"}, {.text = "50"}, {.text = "7"}}}}};
  BOOST_TEST(converted(html::heat_table(table)).text ==
             "|  | parity: ID | parity: 2x | copying: ID |\n|---|---|---|---|\n"
             "| rope | 100<br>99 to 100 | 50 | 7 |\n\n");
}

BOOST_AUTO_TEST_CASE(long_listings_are_written_to_files) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "a = 1 < 2\n";
  const html::Markdown page = converted(html::code(lines));
  BOOST_TEST(page.text == "[l0.txt](l0.txt)\n\n");
  BOOST_TEST(page.listings == std::vector<std::string>{lines}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_rewritten_page_keeps_its_notes) {
  const longhand::TemporaryFolder folder;
  const fs::path page = folder.path() / "fal-table1.md";
  write_results_page(page, made_by("fal/table1"), example);
  std::string text = contents(page);
  BOOST_TEST(contains(text, "# fal/table1, laptop scale\n"));
  BOOST_TEST(contains(text, "seeds 1 to 3, commit 0123456789, 2026-01-02, a machine; 1.5 h"));
  BOOST_TEST(
      contains(text, "| GPT\\_2 | F(0.98) | 0.250 | 0.125 to 0.500 | 0.200, 0.300 | 0.151 |\n"));
  BOOST_TEST(contains(text, "| rank | heads | 7 |  |  | - |\n"));
  BOOST_TEST(text.find("run 1") == text.npos);
  BOOST_TEST(contains(text, "![](files/fal-table1-1.svg)"));
  BOOST_TEST(contains(text, "Shares of a \\* b &lt; c."));
  BOOST_TEST(fs::exists(folder.path() / "files/fal-table1-1.svg"));
  BOOST_TEST(fs::exists(folder.path() / "files/fal-table1-1.txt"));

  const std::string notes = longhand::text(notes_begin, "It misses.\n", notes_end);
  const std::size_t at = text.find(notes_begin);
  BOOST_REQUIRE(at != std::string::npos);
  text.replace(at, notes_begin.size() + notes_end.size(), notes);
  longhand::write_atomically(page, text);
  write_results_page(page, made_by("fal/table1"), example);
  BOOST_TEST(contents(page) == text);

  const auto results = results_in(folder.path());
  BOOST_REQUIRE(results.size() == 1);
  BOOST_TEST(contains(text, figures_table(results.at("fal-table1"))));
  BOOST_TEST(index_table(results) ==
             "| page | what | scale | seeds | training |\n|---|---|---|---|---|\n"
             "| [fal-table1.md](fal-table1.md) | an example | laptop | 3 | 1.5 h |\n");
  BOOST_TEST(contains(paper_table(results, "docs/results/"),
                      "| GPT\\_2 | F(0.98) | 0.250 | 0.125 to 0.500 | 0.200, 0.300 | 0.151 | "
                      "[fal/table1, laptop](docs/results/fal-table1.md) |\n"));
  BOOST_TEST(paper_table(results, "").find("rank") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_long_table_is_at_the_end) {
  const longhand::TemporaryFolder folder;
  const fs::path page = folder.path() / "matrix.md";
  RecipeResult many = example;
  many.rows.assign(200, Row{.row = "a", .column = "b", .value = 0.5});
  write_results_page(page, made_by("matrix"), many);
  const std::string text = contents(page),
                    table = figures_table(results_in(folder.path())["matrix"]);
  BOOST_TEST(text.ends_with("## All figures\n\n" + table));
  BOOST_TEST(text.find(notes_begin) < text.find("## What is counted"));
  BOOST_TEST(with_figures_table(text, results_in(folder.path())["matrix"]) == text);
}

BOOST_AUTO_TEST_CASE(training_times_are_given_in_seconds_minutes_or_hours) {
  const longhand::TemporaryFolder folder;
  const fs::path page = folder.path() / "fal-table1.md";
  for (const auto& [hours, told] : {std::pair(0.007, "; 25 s of"), std::pair(0.5, "; 30 min of"),
                                    std::pair(2.5, "; 2.5 h of")}) {
    Provenance made = made_by("fal/table1");
    made.hours = hours;
    write_results_page(page, made, example);
    BOOST_TEST(contains(contents(page), told));
  }
}

BOOST_AUTO_TEST_CASE(the_values_beside_a_figure_are_named) {
  const longhand::TemporaryFolder folder;
  RecipeResult of_seeds = example;
  of_seeds.bounds = Bounds::seeds;
  write_results_page(folder.path() / "one.md", made_by("fal/table1"), example);
  write_results_page(folder.path() / "two.md", made_by("fal/table1"), of_seeds);
  BOOST_TEST(contains(contents(folder.path() / "one.md"), "|  |  | ours | 95% | runs | paper |"));
  BOOST_TEST(contains(contents(folder.path() / "two.md"),
                      "|  |  | ours | worst to best | runs | paper |"));
  const std::string table = paper_table(results_in(folder.path()), "");
  BOOST_TEST(contains(table, "| 0.125 to 0.500 | 0.200, 0.300 | 0.151 |"));
  BOOST_TEST(contains(table, "| 0.125 to 0.500 (worst to best) | 0.200, 0.300 | 0.151 |"));
}

BOOST_AUTO_TEST_CASE(a_table_of_many_runs_shows_minimum_and_maximum) {
  const longhand::TemporaryFolder folder;
  const fs::path page = folder.path() / "many.md";
  RecipeResult many{.rows = {{.row = "r", .column = "c", .value = 0.5}}};
  for (int run = 1; run <= 5; ++run) {
    many.rows.push_back({.row = "r",
                         .column = longhand::text("c, run ", run),
                         .value = run / 10.0,
                         .in_table = false});
  }
  write_results_page(page, made_by("fal/table1"), many);
  BOOST_TEST(contains(contents(page), "| r | c | 0.500 |  | 0.100 to 0.500 | - |\n"));
}

BOOST_AUTO_TEST_CASE(a_table_is_replaced_and_nothing_else) {
  const longhand::TemporaryFolder folder;
  const fs::path page = folder.path() / "one.md";
  write_results_page(page, made_by("fal/table1"), example);
  const std::string made = contents(page);
  const longhand::Json results = results_in(folder.path()).at("one");
  const std::string table = figures_table(results);
  std::string other = made;
  other.replace(other.find(table), table.size(), "|  |  | ours | old |\n|---|\n| 1 |\n");
  BOOST_TEST(with_figures_table(other, results) == made);
  longhand::expect_refusal([&] { (void)with_figures_table("# page\n", results); },
                           "expected a page with a table of results");
}

BOOST_AUTO_TEST_CASE(a_large_picture_is_replaced_by_a_note) {
  const longhand::TemporaryFolder folder;
  RecipeResult result;
  result.sections.emplace_back(
      "Large", html::figure("<svg>" + std::string(largest_picture, ' ') + "</svg>", "c"));
  write_results_page(folder.path() / "a.md", made_by("a"), result);
  BOOST_TEST(contains(contents(folder.path() / "a.md"), "omitted here"));
  BOOST_TEST(!fs::exists(folder.path() / "files/a-1.svg"));
}

BOOST_AUTO_TEST_CASE(a_block_is_replaced_if_it_exists) {
  BOOST_TEST(replace_block("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n", "x", "new\n") ==
             "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n");
  longhand::expect_refusal(
      [] { replace_block("a", "x", "new"); },
      "expected a page with the marker lines \"<!-- x -->\" and \"<!-- end of x -->\"");
}

/// `longhand repro ... --page` writes the page of a recipe and its figures (the numbers in tables).
/// `longhand record docs/results` makes tables from the figures and writes them into the pages.
BOOST_AUTO_TEST_CASE(committed_pages_agree_with_their_figures) {
  const fs::path pages = fs::path(longhand::test_data).parent_path() / "docs/results";
  const auto results = results_in(pages);
  for (const auto& [name, figures] : results) {
    const std::string page = contents(pages / (name + ".md"));
    BOOST_TEST((page.find(figures_table(figures)) != page.npos), name << ".md has other figures");
    BOOST_TEST(contains(page, "# " + figures["recipe"].string() + ", "));
  }
  const std::string index = contents(pages / "README.md");
  const std::string all = contents(pages / "figures.md");
  const bool indexed = replace_block(index, "results", index_table(results)) == index;
  const bool listed = replace_block(all, "papers and ours", paper_table(results, "")) == all;
  BOOST_TEST(indexed, "README.md is out of date: run `longhand record docs/results`");
  BOOST_TEST(listed, "figures.md is out of date: run `longhand record docs/results`");
}

/// The verdicts on papers' claims are not written by hand. The command `longhand record
/// docs/results --claims README.md,docs/papers.md` computes them from the pages.
BOOST_AUTO_TEST_CASE(committed_verdicts_agree_with_the_figures) {
  const fs::path source = fs::path(longhand::test_data).parent_path();
  const auto judged = judge_all(results_in(source / "docs/results"));
  const std::string command =
      "run `longhand record docs/results --claims README.md,docs/papers.md`";
  BOOST_TEST(contents(source / "docs/results" / claims_file) == claims_json(judged).dump(1) + "\n",
             "claims.json does not follow from the figures: " << command);
  for (const auto& [file, link] :
       {std::pair("README.md", "docs/results/"), std::pair("docs/papers.md", "results/")}) {
    const std::string page = contents(source / file);
    const bool same = replace_block(page, "claims", claims_board(judged, link)) == page;
    BOOST_TEST(same, file << " has an old board of claims: " << command);
  }
}

BOOST_AUTO_TEST_SUITE_END()
