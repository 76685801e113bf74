#include "apps/book/exercise.h"

#include "apps/book/markdown_page.h"
#include "tests/check.h"
#include "tests/contents.h"
#include "tests/paths.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(exercises_test)

using namespace longhand;
using namespace longhand::app;
using namespace longhand::app::book;

BOOST_AUTO_TEST_CASE(right_answers_pass_and_mistakes_fail) {
  const std::filesystem::path docs = std::filesystem::path(test_data) / "../docs";
  std::vector<std::string> exercises = blocks_of(contents(docs / "exercises.md"), "exercise");
  for (const char* folder : {"course", "math"}) {
    for (const auto& page : std::filesystem::directory_iterator(docs / folder)) {
      const std::vector<std::string> more = blocks_of(contents(page.path()), "exercise");
      exercises.insert(exercises.end(), more.begin(), more.end());
    }
  }
  BOOST_TEST(exercises.size() >= 50);
  for (const std::string& text : exercises) {
    const Exercise one = parse_exercise(text);
    const bool right = is_derivative(one, one.right), wrong = is_derivative(one, one.wrong);
    BOOST_TEST(right, one.function << ": the answer " << one.right << " is not its derivative");
    BOOST_TEST(!wrong, one.function << ": the mistake " << one.wrong << " goes unnoticed");
  }
}

BOOST_AUTO_TEST_CASE(every_page_of_the_mathematics_has_a_problem_with_a_hidden_answer) {
  for (const auto& page :
       std::filesystem::directory_iterator(std::filesystem::path(test_data) / "../docs/math")) {
    const std::string text = contents(page.path());
    const std::size_t problem = text.find("\n## Problem");
    BOOST_TEST_REQUIRE(problem != text.npos, page.path() << " has no problem");
    const std::string rest = text.substr(problem);
    BOOST_TEST((contains(rest, "```exercise") || contains(rest, "<details>")),
               page.path() << ": the problem has no answer");
  }
}

BOOST_AUTO_TEST_CASE(broken_exercises_are_refused) {
  expect_refusal([] { parse_exercise("x^2\nright: 2*x\n"); },
                 "expected lines that begin with \"right:\"");
  expect_refusal([] { parse_exercise("x*z\nright: z\nwrong: x\n"); },
                 "with a variable of the function");
}

BOOST_AUTO_TEST_CASE(answers_are_hidden_until_opened) {
  const std::string html = exercise_html(parse_exercise("x^2\nright: 2*x\nwrong: x\n"));
  BOOST_TEST(contains(html, "<details><summary>answer</summary>"));
  BOOST_TEST(contains(html, "gradcheck --expression 'x^2' --derivative '...'"));
}

BOOST_AUTO_TEST_SUITE_END()
