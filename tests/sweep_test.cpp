#include "apps/run/sweep.h"

#include "tests/check.h"

#include "core/error.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(sweep_test)

using namespace longhand;
using namespace longhand::app;

namespace {

using Words = std::vector<std::string>;

std::string refusal(std::string_view text) {
  return longhand::refusal([&] { parse_axis(text); });
}

}  // namespace

BOOST_AUTO_TEST_CASE(an_axis_consists_of_words_numbers_and_ranges) {
  BOOST_TEST(parse_axis("length=2..5").option == "length");
  BOOST_TEST(parse_axis("length=2..5").values == (Words{"2", "3", "4", "5"}));
  BOOST_TEST(parse_axis("length=10..35:10,50").values == (Words{"10", "20", "30", "50"}));
  BOOST_TEST(parse_axis("ignore=0.5,0.98").values == (Words{"0.5", "0.98"}));
  BOOST_TEST(parse_axis("x=7..7").values == (Words{"7"}));
  BOOST_TEST(parse_axis("x=10..14:9223372036854775807").values == (Words{"10"}));
  BOOST_TEST(parse_axis("x=-2..0").values == (Words{"-2", "-1", "0"}));
}

BOOST_AUTO_TEST_CASE(invalid_axes_are_reported) {
  BOOST_TEST(refusal("length") == "expected OPTION=VALUES, got \"length\"");
  BOOST_TEST(refusal("=3") == "expected OPTION=VALUES, got \"=3\"");
  BOOST_TEST(refusal("length=") == "expected a value, got none");
  BOOST_TEST(refusal("length=1,,2") == "expected a value, got none");
  for (const char* range : {"5..2", "1..", "..3", "1..5:0", "1..5:", "a..b", "1..5:-1",
                            "1..99999999999999999999", "0..9000000000"}) {
    BOOST_TEST(refusal(text("x=", range)) ==
               text("expected a range such as 10..100:10, got \"", range, "\""));
  }
  BOOST_TEST(refusal("x=1..1000000") == "expected at most 1000 values, got 1000000");
}

BOOST_AUTO_TEST_CASE(points_are_all_combinations_and_the_last_axis_varies_fastest) {
  Config config("sorting");
  config.set("task.hint", "successor");
  const std::vector<SweepAxis> axes{parse_axis("length=10,20"), parse_axis("repeat=2..4")};
  const auto points = sweep_points(config, axes);
  BOOST_TEST(points.size() == 6u);
  BOOST_TEST(name_of(points[0], axes) == "length=10 repeat=2");
  BOOST_TEST(name_of(points[4], axes) == "length=20 repeat=3");
  BOOST_TEST(points[4].task->longest() == 41);
  BOOST_TEST(points[4].task->heads() == 2);  // `hint` is not swept, so the value in config applies
  BOOST_CHECK_THROW(sweep_points(config, {parse_axis("width=3")}), Error);
  BOOST_CHECK_THROW(sweep_points(config, {parse_axis("length=1,2")}), Error);
  BOOST_CHECK_THROW(
      sweep_points(config, {parse_axis("length=2..1000"), parse_axis("repeat=1..200")}), Error);
}

BOOST_AUTO_TEST_CASE(the_figure_has_one_line_per_combination_of_the_other_axes) {
  const std::vector<SweepAxis> axes{parse_axis("length=10,20"), parse_axis("repeat=2,3")};
  std::vector<SweepPoint> points;
  for (const char* length : {"10", "20"}) {
    for (const char* repeat : {"2", "3"}) {
      points.push_back({.values = {length, repeat}, .task = nullptr});
      points.back().tally.add_share("sequences", repeat[0] - '0', 4);
      points.back().tally.add_value("edit-distance", 7);
    }
  }
  const auto series = sweep_series("hint", points, axes, "sequences");
  BOOST_TEST(series.size() == 2u);
  BOOST_TEST(series[1].name == "hint, repeat 3");
  BOOST_TEST(series[1].points[1].x == 20);
  BOOST_TEST(series[1].points[1].y == 0.75);
  BOOST_TEST(series[1].points[1].low.value() == tasks::wilson(3, 4).low);
  BOOST_TEST(!sweep_series("", points, axes, "edit-distance")[0].points[0].low.has_value());
  points[0].values[0] = "ten";
  BOOST_CHECK_THROW(sweep_series("", points, axes, "sequences"), Error);
}

BOOST_AUTO_TEST_SUITE_END()
