// Tests the pages of docs/course: the build compiles their code (cmake/course_pages.cmake), and the
// tests compare what this code prints with what the pages show.
#include <algorithm>
#include <cctype>
#include <iostream>
#include <sstream>

#include "apps/book/markdown_page.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/course_pages.h"
#include "tests/paths.h"

BOOST_AUTO_TEST_SUITE(course_test)

using namespace longhand;

namespace {

struct Page {
  std::string name, title;
};

/// The pages in reading order.
const std::vector<Page> pages{{"number", "A number that learns"},
                              {"neuron", "A neuron"},
                              {"layer", "A layer"},
                              {"classifier", "The loss of a classifier"},
                              {"attention", "Attention"},
                              {"block", "A block"},
                              {"gpt", "A GPT"},
                              {"checked", "A training that others can check"}};

std::string text_of(const Page& page) {
  return contents(std::filesystem::path(test_data) / "../docs/course" / (page.name + ".md"));
}

/// The joined contents of a page's code blocks of one kind, such as "cpp" or "output".
std::string joined_blocks(const std::string& page, std::string_view kind) {
  std::string all;
  for (const std::string& block : app::book::blocks_of(page, kind)) all += block;
  return all;
}

/// Runs the code of a page and returns what it prints.
std::string printed(const Page& page) {
  struct Captured {
    std::ostringstream out;
    std::streambuf* before = std::cout.rdbuf(out.rdbuf());
    ~Captured() { std::cout.rdbuf(before); }
  } captured;
  const auto code = std::ranges::find(course_pages(), page.name, &CoursePage::name);
  BOOST_REQUIRE(code != course_pages().end());
  code->run();
  return captured.out.str();
}

/// The lines of a text that are not empty.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The numbers with a decimal point that occur in a text.
std::vector<std::string> decimals_of(const std::string& text) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_digit(text[i])) continue;
    std::size_t end = i, point = text.npos;
    for (; end < text.size(); ++end) {
      const bool is_point = text[end] == '.' && point == text.npos && end + 1 < text.size() &&
                            is_digit(text[end + 1]);
      if (is_point) point = end;
      if (!is_point && !is_digit(text[end])) break;
    }
    if (point != text.npos) numbers.push_back(text.substr(i, end - i));
    i = end;
  }
  return numbers;
}

/// The page without its blocks of code.
std::string prose_of(const std::string& page) {
  std::string prose;
  bool code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) code = !code;
    if (!code) prose += line + "\n";
  }
  return prose;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_page_begins_with_its_diagram) {
  for (const Page& page : pages) {
    const std::string all = text_of(page);
    const std::size_t picture = all.find("](" + page.name + ".svg)\n");
    BOOST_TEST(picture < all.find("\n## "), "docs/course/" << page.name << ".md");
  }
}

BOOST_AUTO_TEST_CASE(each_page_shows_what_its_code_prints) {
  BOOST_TEST(course_pages().size() == pages.size());
  for (const Page& page : pages) {
    const std::string shown = joined_blocks(text_of(page), "output");
    BOOST_TEST_INFO_SCOPE("docs/course/" << page.name << ".md");
    BOOST_TEST(!shown.empty());
    BOOST_TEST(lines_of(shown) == lines_of(printed(page)), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(numbers_in_the_text_are_numbers_of_the_code_or_its_output) {
  for (const Page& page : pages) {
    const std::string all = text_of(page);
    const auto known = decimals_of(joined_blocks(all, "cpp") + joined_blocks(all, "output"));
    for (const std::string& number : decimals_of(prose_of(all))) {
      BOOST_TEST(std::ranges::count(known, number) > 0,
                 "docs/course/" << page.name << ".md: no code prints " << number);
    }
  }
  const std::vector<std::string> expected{"0.5", "12.25"};
  BOOST_TEST(decimals_of("-0.5 and 3 of 12.25.") == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_page_leads_to_the_next_and_has_a_hidden_answer) {
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const std::string page = text_of(pages[i]), name = pages[i].name;
    BOOST_TEST(page.starts_with("# " + pages[i].title + "\n"), name);
    BOOST_TEST((page.find("](../math/") != page.npos), name);
    BOOST_TEST((page.find("<details><summary>Answer</summary>") != page.npos), name);
    if (i + 1 == pages.size()) continue;
    const std::string next = "Next: [" + pages[i + 1].title + "](" + pages[i + 1].name + ".md)";
    BOOST_TEST((page.find(next) != page.npos), name << ": " << next);
  }
}

BOOST_AUTO_TEST_SUITE_END()
