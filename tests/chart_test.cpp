#include "apps/html/chart.h"
#include "apps/html/svg.h"

#include <cmath>
#include <limits>
#include "tests/check.h"
#include "tests/refusal.h"

BOOST_AUTO_TEST_SUITE(chart_test)

using namespace longhand::app::html;
using longhand::contains;

BOOST_AUTO_TEST_CASE(a_chart_is_drawn_for_any_points) {
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

BOOST_AUTO_TEST_CASE(a_short_logarithmic_axis_has_tick_marks) {
  const std::string svg = line_chart({.x_label = "step",
                                      .y_label = "loss",
                                      .series = {{.name = "loss", .points = {{0, 1.6}, {1, 1.1}}}},
                                      .log_y = true});
  BOOST_TEST(contains(svg, ">1.2<"));
  BOOST_TEST(contains(svg, ">1.4<"));
}

BOOST_AUTO_TEST_CASE(the_colour_of_a_series_depends_on_its_index_unless_it_is_given) {
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

BOOST_AUTO_TEST_CASE(tick_labels_are_short) {
  BOOST_TEST(mark_label(0) == "0");
  BOOST_TEST(mark_label(-2500) == "-2500");
  BOOST_TEST(mark_label(20000) == "20k");
  BOOST_TEST(mark_label(1.5e6) == "1.5M");
  BOOST_TEST(mark_label(-3e9) == "-3G");
  BOOST_TEST(mark_label(1e-5) == "1e-05");
}

BOOST_AUTO_TEST_CASE(ticks_are_round_numbers_inside_the_range) {
  BOOST_TEST(ticks(0, 1, 5) == (std::vector<double>{0, 0.2, 2 * 0.2, 3 * 0.2, 4 * 0.2, 1}),
             boost::test_tools::per_element());
  BOOST_TEST(ticks(3, 3, 5) == std::vector<double>{3}, boost::test_tools::per_element());
  for (const double mark : ticks(-0.01, 0.99, 5)) BOOST_TEST(!(mark == 0 && std::signbit(mark)));
}

BOOST_AUTO_TEST_CASE(points_without_a_line_need_no_legend_entry) {
  const std::vector<Point> points{{10, 0.1}, {100, 0.01}, {1000, 0.001}};
  const auto drawn = [&](const Series& series) {
    return line_chart(
        {.x_label = "n", .y_label = "e", .series = {series}, .log_x = true, .log_y = true});
  };
  const std::string joined = drawn({.name = "runs", .points = points});
  // The point (100, 0.01) must be drawn in the middle of both axes.
  BOOST_TEST(contains(joined, "L383.0 153.0"));
  BOOST_TEST(contains(joined, ">runs</text>"));
  const std::string alone =
      drawn({.name = "runs", .points = points, .marks = true, .line = false, .in_legend = false});
  BOOST_TEST(alone.find("L383.0") == std::string::npos);
  BOOST_TEST(contains(alone, "M383.0 153.0"));  // an invisible target for the mouse pointer
  BOOST_TEST(contains(alone, "cx=\"383.0\" cy=\"153.0\""));
  BOOST_TEST(alone.find(">runs</text>") == std::string::npos);
  const std::string diamonds =
      drawn({.name = "paper", .points = points, .marks = true, .line = false, .diamonds = true});
  BOOST_TEST(
      contains(diamonds, "<polygon points=\"383.0,146.5 389.5,153.0 383.0,159.5 376.5,153.0"));
  BOOST_TEST(diamonds.find("<circle") == std::string::npos);
  BOOST_TEST(contains(diamonds, ">paper</text>"));
}

BOOST_AUTO_TEST_CASE(a_series_without_a_name_has_no_legend_entry) {
  const auto lines = [](const std::string& name) {
    const std::string svg = line_chart(
        {.x_label = "x", .y_label = "y", .series = {{.name = name, .points = {{0, 1}, {1, 2}}}}});
    std::size_t count = 0;
    for (std::size_t at = 0; (at = svg.find("<line ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  BOOST_TEST(lines("a") == lines("") + 1);
}

BOOST_AUTO_TEST_CASE(a_long_logarithmic_axis_has_ticks_only_at_powers_of_ten) {
  const std::string svg = line_chart({.x_label = "n",
                                      .y_label = "e",
                                      .series = {{.name = "s", .points = {{800, 1}, {2e6, 0.3}}}},
                                      .log_x = true,
                                      .log_y = true});
  for (const char* mark : {">1000<", ">10k<", ">100k<", ">1M<", ">0.5<", ">1<"}) {
    BOOST_TEST_CONTEXT(mark) { BOOST_TEST(contains(svg, mark)); }
  }
  BOOST_TEST(svg.find(">20k<") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_line_is_clipped_to_the_range_of_the_axes) {
  const std::string svg =
      line_chart({.x_label = "n",
                  .y_label = "e",
                  .series = {{.name = "s", .points = {{1, 1}, {10, 0.1}, {100, 0.001, 1e-4, 1}}}},
                  .log_x = true,
                  .log_y = true,
                  .y_low = 0.01});
  BOOST_TEST(contains(svg, "data-values=\"1 1 10 0.1\""));
  // The x axis reaches to 100, although the point there has y = 0.001 and is not drawn, because the
  // y axis begins at 0.01.
  BOOST_TEST(contains(svg, ">100<"));
}

BOOST_AUTO_TEST_SUITE_END()
