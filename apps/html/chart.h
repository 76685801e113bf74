#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Charts as inline SVG. Colours are CSS variables of the page.
namespace longhand::app::html {

struct Point {
  double x = 0, y = 0;
  std::optional<double> low = {}, high = {};  // interval around y, drawn as a band
};

struct Series {
  std::string name;
  std::vector<Point> points;
  bool dashed = false;
  bool marks = false;     // draw a dot or a diamond at each point
  bool line = true;       // draw a line through the points
  bool diamonds = false;  // draw diamonds, which are larger, instead of dots
  bool in_legend = true;
  /// Index of the colour. The default is the index of the series in the chart.
  std::optional<std::size_t> hue = {};
};

struct LineChart {
  std::string x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
  std::vector<double> x_marks = {};               // default: round numbers
  std::optional<double> y_low = {}, y_high = {};  // default: the range of the data
};
/// Draws a chart as SVG. A line has a gap where a point is not finite, is not positive on a
/// logarithmic axis, or is outside [y_low, y_high]. Bands are clipped to this range.
std::string line_chart(const LineChart& chart);

/// A picture with two rows of tokens. A line connects each token of the lower row with the token of
/// the upper row that it selected.
struct Arcs {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> selected;  // index of the token that each token selected; -1: none
  std::vector<bool> marked;            // true for each token whose line is emphasized
};
std::string arcs(const Arcs& diagram);

/// About `wanted` round numbers that cover the range [low, high].
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace longhand::app::html
