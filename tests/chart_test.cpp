#include "apps/html/chart.h"
#include "apps/html/svg.h"

#include <cmath>
#include <limits>
#include "tests/check.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(chart_test)

using namespace longhand::app::html;
using longhand::contains;

BOOST_AUTO_TEST_CASE(a_chart_is_drawn_whatever_its_points_are) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<Point>> all{{},
                                            {{1, 0}},
                                            {{1, 2}},
                                            {{0, -3}, {1, 0}},
                                            {{0, 1e-300}, {1, 1e300}},
                                            {{0, infinity}, {1, NAN}}};
  for (const std::vector<Point>& points : all) {
    for (const bool log : {false, true}) {
      const std::string svg = line_chart({.x_label = "x",
                                          .y_label = "y",
                                          .series = {{.name = "s", .points = points}},
                                          .log_x = log,
                                          .log_y = log});
      BOOST_TEST(svg.ends_with("</svg>\n"));
      BOOST_TEST(svg.find("nan") == std::string::npos);
      BOOST_TEST(svg.find("inf") == std::string::npos);
      BOOST_TEST(svg.size() < 100'000u);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_short_logarithmic_axis_has_marks_too) {
  const std::string svg = line_chart({.x_label = "step",
                                      .y_label = "loss",
                                      .series = {{.name = "loss", .points = {{0, 1.6}, {1, 1.1}}}},
                                      .log_y = true});
  BOOST_TEST(contains(svg, ">1.2<"));
  BOOST_TEST(contains(svg, ">1.4<"));
}

BOOST_AUTO_TEST_CASE(a_series_has_the_colour_of_its_place_or_its_own) {
  const auto drawn = [](std::optional<std::size_t> hue) {
    const Series second{.name = "b", .points = {{0, 2}, {1, 3}}, .dashed = true, .hue = hue};
    return line_chart({.x_label = "x",
                       .y_label = "y",
                       .series = {{.name = "a", .points = {{0, 1}, {1, 2}}}, second}});
  };
  BOOST_TEST(contains(drawn({}), "var(--c1)"));
  BOOST_TEST(drawn(0).find("var(--c1)") == std::string::npos);
  BOOST_TEST(contains(drawn(0), "stroke-dasharray"));
}

BOOST_AUTO_TEST_CASE(marks_are_short) {
  BOOST_TEST(mark_label(0) == "0");
  BOOST_TEST(mark_label(-2500) == "-2500");
  BOOST_TEST(mark_label(20000) == "20k");
  BOOST_TEST(mark_label(1.5e6) == "1.5M");
  BOOST_TEST(mark_label(-3e9) == "-3G");
  BOOST_TEST(mark_label(1e-5) == "1e-05");
}

BOOST_AUTO_TEST_CASE(ticks_are_round_and_inside) {
  BOOST_TEST(ticks(0, 1, 5) == (std::vector<double>{0, 0.2, 2 * 0.2, 3 * 0.2, 4 * 0.2, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(ticks(3, 3, 5) == std::vector<double>{3}, boost::test_tools::per_element());
  for (const double mark : ticks(-0.01, 0.99, 5)) BOOST_TEST(!(mark == 0 && std::signbit(mark)));
}

BOOST_AUTO_TEST_SUITE_END()
