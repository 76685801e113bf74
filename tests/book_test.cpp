#include "apps/book/book.h"

#include <cmath>
#include <numeric>

#include "apps/book/live_pages.h"
#include "apps/book/markdown_page.h"
#include "apps/book/mathml.h"
#include "apps/book/mechanisms.h"
#include "core/json.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/refusal.h"
#include "tests/temporary_folder.h"

/// Tests the book, a website made from the documents: formulas, pages and their links.
BOOST_AUTO_TEST_SUITE(book_test)

using namespace longhand::app::book;
using longhand::contains;
using longhand::contents;
namespace fs = std::filesystem;

namespace {

const auto same = [](const std::string& link) { return link; };

std::string inside(const std::string& latex, bool display = false) {
  std::string formula = mathml(latex, display);
  const std::size_t begin = formula.find("<mrow>") + 6;
  return formula.substr(begin, formula.rfind("</mrow>") - begin);
}

double sum(const std::vector<double>& row) { return std::accumulate(row.begin(), row.end(), 0.0); }

/// A book written from this repository, without checking the operations. `lines` counts the
/// progress messages of write_book().
struct WrittenBook {
  longhand::TemporaryFolder folder;
  fs::path out = folder / "book";
  std::int64_t lines = 0;
  BookFacts facts = write_book({.source = fs::path(longhand::test_data).parent_path(),
                                .out = out,
                                .checks = false,
                                .doing = [this](std::string_view) { ++lines; }});
};
const WrittenBook& written_book() {
  static const WrittenBook book;
  return book;
}

}  // namespace

BOOST_AUTO_TEST_CASE(formulas_become_mathml) {
  BOOST_TEST(inside("x_i^2") == "<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mn>2</mn></msubsup>" ||
             inside("x_i^2") == "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>");
  BOOST_TEST(inside("\\frac{a}{12}") ==
             "<mfrac><mrow><mi>a</mi></mrow><mrow><mn>12</mn></mrow></mfrac>");
  BOOST_TEST(contains(inside("\\tfrac12"), "<mfrac><mn>1</mn><mn>2</mn></mfrac>"));
  BOOST_TEST(contains(inside("\\sum_j a", true), "<munder><mo>∑</mo>"));
  BOOST_TEST(contains(inside("\\sum_j a", false), "<msub><mo>∑</mo>"));
  BOOST_TEST(contains(inside("\\text{if $x < 1$ or so}"), "<mo>&lt;</mo>"));
  BOOST_TEST(contains(inside("\\text{bias\\_a}"), "<mtext>bias_a</mtext>"));
  BOOST_TEST(contains(inside("\\begin{cases} 0 & a \\\\ 1 & b \\end{cases}"), "<mtable><mtr>"));
  BOOST_TEST(contains(inside("m'"), "<mo>′</mo>"));
  BOOST_TEST(contains(mathml("a", true), "display=\"block\""));
}

BOOST_AUTO_TEST_CASE(broken_formulas_are_refused) {
  longhand::expect_refusal([] { mathml("\\nosuch x", false); },
                           "the command \"\\\\nosuch\" is not known");
  longhand::expect_refusal([] { mathml("{a", false); }, "a brace is not closed");
  longhand::expect_refusal([] { mathml("a}", false); }, "has no matching beginning");
  longhand::expect_refusal([] { mathml("a_b_c", false); }, "two subscripts");
  longhand::expect_refusal([] { mathml("\\frac{a}", false); }, "an argument is missing");
  longhand::expect_refusal([] { mathml("\\begin{cases} a", false); }, "is not closed");
  longhand::expect_refusal([] { mathml(std::string(10'000, '{'), false); }, "nested too deep");
}

BOOST_AUTO_TEST_CASE(pages_become_html) {
  const MarkdownPage page = markdown_page(
      "# Norms\n\nA *word*, **two words** and `a < b` of [a [1] page](b.md#c)\nwith $x_i$.\n\n"
      "## Of rows\n\n- one\n  goes on\n- two\n\n1. first\n\n| a | b \\| c |\n|---|---|\n| `x|y` | "
      "$|x|$ "
      "|\n\n```sh\nls <x>\n```\n<!-- not\nseen -->\nThe last words, &lt; b &amp; *c*.\n<!-- seen "
      "neither "
      "-->\n",
      same);
  BOOST_TEST(page.title == "Norms");
  BOOST_TEST(contains(page.html,
                      "<em>word</em>, <strong>two words</strong> and <code>a &lt; b</code> of "
                      "<a href=\"b.md#c\">a [1] page</a>\nwith <math>"));
  BOOST_TEST(contains(page.html, "<h2 id=\"of-rows\">Of rows</h2>"));
  BOOST_TEST(contains(page.html, "<ul>\n<li>one\ngoes on</li>\n<li>two</li>\n</ul>"));
  BOOST_TEST(contains(page.html, "<ol>\n<li>first</li>\n</ol>"));
  BOOST_TEST(contains(page.html, "<th>b | c</th>"));
  BOOST_TEST(contains(page.html, "<td><code>x|y</code></td>"));
  BOOST_TEST(contains(page.html, "<pre>ls &lt;x&gt;\n</pre>"));
  BOOST_TEST(contains(page.html, "<p>The last words, &lt; b &amp; <em>c</em>.</p>"));
  BOOST_TEST(page.html.find("seen") == std::string::npos);
  BOOST_REQUIRE(page.links.size() == 1);
  BOOST_TEST(page.links[0] == "b.md#c");
}

BOOST_AUTO_TEST_CASE(pictures_have_a_width_and_a_description) {
  const auto width = [](const std::string& link) { return link == "a.svg" ? 495 : 0; };
  BOOST_TEST(markdown_page("![a < b](a.svg) ![c](b.svg)\n", same, width).html ==
             "<p><img alt=\"a &lt; b\" width=\"495\" src=\"a.svg\"> "
             "<img alt=\"c\" src=\"b.svg\"></p>\n");
}

BOOST_AUTO_TEST_CASE(answers_on_pages_are_hidden_until_opened) {
  const MarkdownPage page = markdown_page(
      "Why?\n\n<details><summary>Answer</summary>\n\nA *sum*.\n\n```cpp\na < b\n```\n\n</details>\n"
      "\nNext\n",
      same);
  BOOST_TEST(page.html ==
             "<p>Why?</p>\n<details><summary>Answer</summary>\n<p>A <em>sum</em>.</p>\n"
             "<pre>a &lt; b\n</pre>\n</details>\n<p>Next</p>\n");
  longhand::expect_refusal(
      [] { markdown_page("<details><summary>Answer</summary>\n\nA sum.\n", same); },
      "expected a line </details> after a line <details>");
}

BOOST_AUTO_TEST_CASE(figures_above_those_of_guessing_are_coloured) {
  const std::string html = markdown_page(
                               "| | Sorting: ID | Sorting: 2x | Reversal: ID |\n|---|---|---|---|\n"
                               "| one | 100<br>90 | 20† | 0 |\n| guessing | 0 | 20 | 50 |\n",
                               same)
                               .html;
  BOOST_TEST(contains(html, "<th colspan=\"2\""));
  BOOST_TEST(contains(html, "background:rgba(var(--hot),0.55)\">100<br><small"));
  // Only the cell with the value 100 has a background colour.
  BOOST_TEST(html.find("background", html.find("0.55")) == html.npos);
  BOOST_TEST(contains(html, ">20†<"));
}

BOOST_AUTO_TEST_CASE(drawn_mechanisms_follow_their_formulas) {
  for (const Mechanism& one : mechanisms()) {
    const std::string name(one.name);
    for (std::size_t i = 0; i < one.weights.size(); ++i) {
      const std::vector<double>& row = one.weights[i];
      for (std::size_t j = i + 1; j < row.size(); ++j) BOOST_TEST(row[j] == 0);
      if (name == "softmax" || name == "alibi" || name == "fox" || name == "ssmax" ||
          name == "entmax") {
        BOOST_TEST(std::abs(sum(row) - 1) < 1e-9);
      }
      if (name == "sink") BOOST_TEST((sum(row) > 0 && sum(row) < 1));
      if (name == "stick") BOOST_TEST((row[i] == 0 && sum(row) < 1));
      if (name == "fal") BOOST_TEST(std::ranges::count(row, 0.0) >= std::ssize(row) - 1);
    }
  }
}

/// Checks that every link of every page leads to an existing page or picture, and that every
/// formula is converted from LaTeX.
BOOST_AUTO_TEST_CASE(every_link_in_the_book_leads_somewhere) {
  const fs::path& out = written_book().out;
  const BookFacts& facts = written_book().facts;
  BOOST_TEST(written_book().lines > facts.pages);
  BOOST_TEST(facts.pages > 100);
  BOOST_TEST(facts.formulas > 1000);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(out)) {
    if (entry.path().extension() != ".html") continue;
    const std::string page = contents(entry.path());
    const bool is_source = entry.path().string().find("/source/") != std::string::npos;
    BOOST_TEST((is_source || page.find("$$") == page.npos), entry.path());
    for (const std::string_view key : {"href=\"", "src=\""}) {
      for (std::size_t at = page.find(key); at != page.npos; at = page.find(key, at + 1)) {
        const std::size_t begin = at + key.size();
        const std::string link = page.substr(begin, page.find('"', begin) - begin);
        if (link.starts_with("http") || link.starts_with("#")) continue;
        const fs::path target = entry.path().parent_path() / link.substr(0, link.find('#'));
        BOOST_TEST(fs::exists(target), entry.path() << ": " << link);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_course_is_listed_before_the_mathematics) {
  std::string index = contents(written_book().out / "index.html");
  const std::size_t list = index.find("<h2>A course");
  BOOST_REQUIRE(list != index.npos);
  index.erase(0, list);
  const std::size_t first = index.find("course/number.html"), last = index.find("course/gpt.html");
  BOOST_REQUIRE(last != index.npos);
  BOOST_TEST(first < last);
  BOOST_TEST(last < index.find("math/README.html"));
  const std::string page = contents(written_book().out / "course/number.html");
  BOOST_TEST(contains(page, "<a href=\"neuron.html\">next"));
}

BOOST_AUTO_TEST_CASE(chapters_and_the_first_page_link_to_the_pages_that_compute) {
  const fs::path& out = written_book().out;
  const std::string index = contents(out / "index.html");
  for (const LivePage& page : live_pages()) {
    const std::string link = longhand::text("live/", page.name, ".html\"");
    BOOST_TEST(contains(index, link));
    for (const std::string_view chapter : page.chapters) {
      const std::string text = contents(out / (std::string(chapter) + ".html"));
      BOOST_TEST(contains(text, "<p class=\"try\">Try it: <a href=\"../" + link));
    }
  }
  for (const char* path : {"Students", "Library users", "Texts and models", "Researchers"}) {
    BOOST_TEST(contains(index, path));
  }
}

BOOST_AUTO_TEST_CASE(a_chapter_shows_a_picture_before_and_a_kernel_after_the_formulas) {
  const std::string page = contents(written_book().out / "math/chacal.html");
  const std::size_t picture = page.find("<summary>Picture: ChaCAL"), formula = page.find("<math"),
                    loop = page.find("id=\"as-code\""),
                    kernel = page.find("<summary>The kernel: core/cpu/attention/chacal_rows.h");
  BOOST_TEST(picture < formula);
  BOOST_TEST(formula < loop);
  BOOST_TEST(loop < kernel);
  BOOST_TEST(kernel != page.npos);
}

BOOST_AUTO_TEST_CASE(formulas_in_html_become_mathml) {
  const std::string html = with_formulas("<p>$x^2$ and</p>$$y$$");
  BOOST_TEST(html.starts_with("<p><math"));
  BOOST_TEST(contains(html, "display=\"block\""));
  BOOST_TEST(!contains(html, "$"));
  longhand::expect_refusal([] { with_formulas("costs $5"); }, "expected $ at the end of a formula");
}

BOOST_AUTO_TEST_CASE(the_model_of_text_is_smaller_than_a_mebibyte) {
  const std::string script = contents(written_book().out / "live/text_model.js");
  BOOST_TEST(script.size() < 1U << 20);
  const std::size_t begin = script.find('{'), end = script.rfind('}');
  const auto model = longhand::Json::parse(script.substr(begin, end + 1 - begin));
  BOOST_REQUIRE(model);
  BOOST_TEST(contains((*model)["ini"].string(), "name = typed"));
  BOOST_TEST((*model)["parameters"].string().size() % 4 == 0);
}

BOOST_AUTO_TEST_CASE(a_search_for_backpropagation_finds_the_tape_and_the_course) {
  std::string file = contents(written_book().out / "search.js");
  const std::size_t begin = file.find('['), end = file.rfind(']');
  const auto pages = longhand::Json::parse(file.substr(begin, end + 1 - begin));
  BOOST_REQUIRE(pages.has_value());
  std::string found;
  for (const longhand::Json& page : pages->elements()) {
    const std::string title = page["title"].string(), text = page["text"].string();
    if (contains(title, "backpropagation")) found += "in the title of ";
    if (contains(text, "backpropagation")) found += page["page"].string() + "\n";
  }
  BOOST_TEST(contains(found, "in the title of math/tape.html\n"));
  BOOST_TEST(contains(found, "course/number.html\n"));
}

BOOST_AUTO_TEST_CASE(a_folder_with_other_files_is_refused_and_not_changed) {
  const longhand::TemporaryFolder folder;
  fs::create_directories(folder / "mine/notes");
  const fs::path source = fs::path(longhand::test_data).parent_path();
  longhand::expect_refusal(
      [&] { write_book({.source = source, .out = folder / "mine", .checks = false}); },
      "expected a new folder, an empty folder, or a folder with an earlier book");
  longhand::expect_refusal(
      [&] { write_book({.source = folder.path(), .out = folder / "new", .checks = false}); },
      "expected a checkout of longhand");
  BOOST_TEST(!fs::exists(folder / "new"));
}

BOOST_AUTO_TEST_SUITE_END()
