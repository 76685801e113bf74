#include <cctype>
#include <filesystem>
#include <string>
#include "apps/book/example.h"
#include "apps/book/markdown_page.h"
#include "tests/check.h"

#include "autograd/catalog/catalog.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(math_pages_test)

using namespace longhand;

namespace {

const std::filesystem::path pages = std::filesystem::path(test_data) / "../docs/math";

bool of_a_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// True if `word` occurs in the text as a whole word and not only within longer words.
bool has_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !of_a_word(text[at - 1]);
    if (begins && (end == text.size() || !of_a_word(text[end]))) return true;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_op_of_the_catalog_is_named_on_its_page) {
  for (const catalog::Operation& operation : catalog::operations()) {
    const std::string page = operation.page + ".md";
    BOOST_TEST(has_word(contents(pages / page), operation.name),
               "docs/math/" << page << " does not speak of " << operation.name);
  }
}

BOOST_AUTO_TEST_CASE(every_page_of_operations_has_a_worked_example) {
  for (const catalog::Operation& operation : catalog::operations()) {
    const std::string page = contents(pages / (operation.page + ".md"));
    BOOST_TEST((page.find("## A worked example") != page.npos),
               "docs/math/" << operation.page << ".md has none");
  }
}

BOOST_AUTO_TEST_CASE(worked_examples_agree_with_the_reference_backend) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pages)) {
    for (const std::string& block : app::book::blocks_of(contents(entry.path()), "example")) {
      const std::string wrong = app::book::disagreement(app::book::parse_example(block));
      BOOST_TEST(wrong.empty(), entry.path().filename() << ": " << wrong);
      ++examples;
    }
  }
  BOOST_TEST(examples > 15);
}

BOOST_AUTO_TEST_CASE(a_wrong_example_is_detected) {
  const auto wrong = [](const std::string& text) {
    return app::book::disagreement(app::book::parse_example(text));
  };
  BOOST_TEST(wrong("scale alpha=2\nx = [1, 2]\ny : [2, 4]\n").empty());
  BOOST_TEST(wrong("scale alpha=2\nx = [1, 2]\ny : [2, 5]\n") == "scale: y is [2, 4], not [2, 5]");
  expect_refusal([] { app::book::parse_example("scale\nz : [2]\n"); },
                 "scale has no output or gradient z");
  expect_refusal([] { app::book::parse_example("scale\nx = [1, [2]]\n"); },
                 "expected lists of equal lengths");
  expect_refusal([] { app::book::parse_example("scale\nx = []\n"); }, "at most four deep");
  expect_refusal([] { app::book::parse_example("scale\nq = [1]\n"); },
                 "has no input or output gradient");
  expect_refusal([] { app::book::parse_example("scale\nx\n"); }, "expected \"NAME = VALUE\"");
  expect_refusal([] { app::book::parse_example("scal\n"); }, "there is no op");
}

BOOST_AUTO_TEST_CASE(every_page_that_the_index_names_exists) {
  const std::string index = contents(pages / "README.md");
  int named = 0;
  for (std::size_t at = index.find("]("); at != std::string::npos; at = index.find("](", at + 1)) {
    const std::string page = index.substr(at + 2, index.find(')', at) - at - 2);
    BOOST_TEST(std::filesystem::exists(pages / page), "docs/math has no " << page);
    ++named;
  }
  BOOST_TEST(named > 0);
}

BOOST_AUTO_TEST_SUITE_END()
