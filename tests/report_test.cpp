// Tests the report of a run: its curves with their values, the sample answers, and the links.
#include <sstream>

#include "apps/html/page.h"
#include "apps/report.h"
#include "tests/program.h"

BOOST_FIXTURE_TEST_SUITE(report_test, longhand::Program)

using namespace longhand;

BOOST_AUTO_TEST_CASE(a_report_contains_curves_with_values_answers_and_links) {
  BOOST_REQUIRE((*this)("train --task reversal --task.length 1-3 --layers 1 --heads softmax:2 "
                        "--width 8 --steps 6 --batch 2 --evaluate-every 3 --evaluate-samples 2 "
                        "--threads 1 --quiet --out run")
                    .status == 0);
  const std::string page = contents(folder / "run/report.html");
  for (const char* part :
       {"data-name=\"loss\"", "data-name=\"rate\"", "data-name=\"gradient_norm\"",
        "data-name=\"tokens/s\"", "<script>", "href=\"./config.ini\"", "Samples during training"}) {
    BOOST_TEST(contains(page, part));
  }
  const std::vector<Json> lines = metrics("run");
  const Json& samples = lines.back()["samples"];
  BOOST_REQUIRE(samples.size() >= 1u);
  for (const Json& sample : samples) {
    BOOST_TEST(!sample["prompt"].string().empty());
    BOOST_TEST(!sample["expected"].string().empty());
    BOOST_TEST(contains(page, sample["expected"].string()));
  }
}

BOOST_AUTO_TEST_CASE(a_table_wraps_words_but_neither_numbers_nor_names) {
  app::Report report({{"name", "name"}, {"what", "what it is"}, {"value", "mean value", "%.0e"}});
  report.add(
      {{"name", "one_long_name"}, {"what", "a cell of several short words"}, {"value", 1e-5}});
  report.add({{"name", "\u00e9"}, {"what", "train/sequences"}, {"value", Json()}});
  const auto printed = [&](std::size_t columns) {
    std::ostringstream out;
    report.print_table(out, columns);
    return out.str();
  };
  BOOST_TEST(printed(0) ==
             "name           what it is                     mean value\n"
             "one_long_name  a cell of several short words       1e-05\n"
             "\u00e9              train/sequences                         -\n");
  BOOST_TEST(printed(58) == printed(0));
  BOOST_TEST(printed(36) ==
             "name           what it    mean value\n"
             "               is\n"
             "one_long_name  a cell of       1e-05\n"
             "               several\n"
             "               short\n"
             "               words\n"
             "\u00e9              train/              -\n"
             "               sequences\n");
  BOOST_TEST(contains(printed(31), "what it     mean\n               is         value\n"));
  // If words do not fit, columns are closer. If this is not enough, words are divided into pieces,
  // but numbers are not.
  BOOST_TEST(contains(printed(29), "one_long_name a cell of 1e-05\n"));
  BOOST_TEST(printed(21) ==
             "name  what it    mean\n"
             "      is        value\n"
             "one_  a cell of 1e-05\n"
             "long_ several\n"
             "name  short\n"
             "      words\n"
             "\u00e9     train/        -\n"
             "      sequences\n");
  // Pieces are divided only if they do not fit either.
  BOOST_TEST(contains(printed(18), "sequen\n"));
  BOOST_TEST(contains(printed(18), "1e-05\n"));
  BOOST_TEST(printed(1) == printed(18));
}

BOOST_AUTO_TEST_CASE(links_are_safe_for_any_folder_name) {
  BOOST_TEST(app::html::link("a<b", "x\"y/#1 2.html") ==
             "<a href=\"./x%22y/%231%202.html\">a&lt;b</a>");
  BOOST_TEST(app::html::link("u", "javascript:x") == "<a href=\"./javascript%3Ax\">u</a>");
}

BOOST_AUTO_TEST_SUITE_END()
