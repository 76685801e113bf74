#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Charts as inline SVG. Colours are the page's CSS variables.
namespace longhand::app::html {

struct Point {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};  // an interval, drawn as a band
};

struct Series {
  std::string name;
  std::vector<Point> points;
  bool dashed = false;
  bool marks = false;     // a dot at each point
  bool line = true;       // between its points; false: they stand alone
  bool diamonds = false;  // marks larger than dots, and square
  bool in_legend = true;
  std::optional<std::size_t> hue = {};  // which colour; by its place in the chart if not given
};

struct LineChart {
  std::string x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
  std::vector<double> x_marks = {};               // empty: round numbers
  std::optional<double> y_low = {}, y_high = {};  // none: from the data
};
/// Points that are not finite, not positive on a logarithmic axis, or beyond y_low or y_high leave
/// a gap; bands are cut off there.
std::string line_chart(const LineChart& chart);

/// Tokens written twice, above and below; a line from each token of the lower row to the one it
/// selected in the upper row.
struct Arcs {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> selected;  // one for each token, -1: none
  std::vector<bool> marked;            // tokens whose lines are drawn strong
};
std::string arcs(const Arcs& diagram);

/// Round numbers that cover [low, high], about `wanted` of them.
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace longhand::app::html
