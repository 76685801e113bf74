#include "apps/html/heat_map.h"

#include <cmath>
#include <limits>
#include "tests/check.h"

BOOST_AUTO_TEST_SUITE(heat_map_test)

using namespace longhand::app::html;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(squares_show_values_and_the_reference_is_outlined) {
  const std::string svg = heat_map({.rows = {"a", "<"},
                                    .columns = {"x", "y"},
                                    .height = 2,
                                    .width = 2,
                                    .values = {0.5, 0, 0.25, 2},
                                    .full = 1,
                                    .outlined = {{1, 0}, {0, 1}, {7, 7}}});
  BOOST_TEST(svg.find("<title>a (0) \u2192 x (0): 0.5</title>") != std::string::npos);
  BOOST_TEST(svg.find("<title>&lt; (1) \u2192 y (1): 2</title>") != std::string::npos);
  // Three nonzero values and two outlines are rectangles with a title. The frame is a rectangle
  // without a title.
  BOOST_TEST(count(svg, "<title>") == 5u);
  BOOST_TEST(count(svg, "<rect") == 6u);
  // One of the values exceeds the maximum of the colour scale and has full opacity.
  BOOST_TEST(count(svg, "fill-opacity=\"1\"") == 1u);
}

// Labels have a fixed font size. If there is no room for all labels, only every second or fourth is
// written. Long labels of columns are rotated.
BOOST_AUTO_TEST_CASE(labels_are_readable_at_any_size) {
  for (const std::int64_t n : {1, 20, 48, 400}) {
    const std::vector<std::string> names(static_cast<std::size_t>(n), "abcdefghijklmnop");
    const std::string svg =
        heat_map({.rows = names,
                  .columns = names,
                  .height = n,
                  .width = n,
                  .values = std::vector<double>(static_cast<std::size_t>(n * n), 0.0)});
    const std::size_t labels = count(svg, "<text");
    BOOST_TEST(count(svg, "font-size:11.0px") == labels);
    // Every label is truncated to 11 characters and an ellipsis.
    BOOST_TEST(count(svg, "abcdefghijk\u2026<") == labels);
    BOOST_TEST(count(svg, "rotate(-90") == labels / 2);
    const std::size_t stride = n == 400 ? 4 : 2;
    BOOST_TEST(labels == (n <= 20 ? 2 * static_cast<std::size_t>(n)
                                  : 2 * ((static_cast<std::size_t>(n) + stride - 1) / stride)));
  }
  const std::string near =
      heat_map({.columns = {"\u00e9", "b"}, .height = 1, .width = 2, .values = {1, 1}});
  BOOST_TEST(count(near, "rotate") == 0u);
}

BOOST_AUTO_TEST_CASE(a_map_is_drawn_for_any_values) {
  const double infinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(heat_map({}).ends_with("</svg>\n"));
  const std::string svg =
      heat_map({.height = 2, .width = 2, .values = {NAN, infinity, -1, -infinity}});
  BOOST_TEST(svg.ends_with("</svg>\n"));
  BOOST_TEST(count(svg, "<title>") == 1u);  // of these entries, only +infinity has a colour
}

BOOST_AUTO_TEST_CASE(the_colour_scale_ranges_from_no_colour_to_full_colour) {
  const std::string svg = colour_scale(0.2, "share");
  for (const char* mark : {">0<", ">0.1<", ">0.2<", ">share<"}) {
    BOOST_TEST(svg.find(mark) != std::string::npos);
  }
  BOOST_TEST(svg.find("fill-opacity=\"0\"") != std::string::npos);
  BOOST_TEST(svg.find("fill-opacity=\"1\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
