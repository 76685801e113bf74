#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// Charts as inline SVG. Colours are CSS variables of the page.
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
  bool line = true;       // draw a line through the points
  bool diamonds = false;  // larger, square marks
  bool in_legend = true;
  std::optional<std::size_t> hue = {};  // index of the colour; default: by place in the chart
};

struct LineChart {
  std::string x_label, y_label;
  std::vector<Series> series;
  bool log_x = false, log_y = false;
  std::vector<double> x_marks = {};               // default: round numbers
  std::optional<double> y_low = {}, y_high = {};  // default: from the data
};
/// Draws a chart. Points that are not finite, not positive on a logarithmic axis, or beyond y_low
/// or y_high leave a gap; bands are clipped there.
std::string line_chart(const LineChart& chart);

/// The tokens in two rows, with a line from each token of the lower row to the token it selected in
/// the upper row.
struct Arcs {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> selected;  // one per token; -1: none
  std::vector<bool> marked;            // tokens whose lines are emphasized
};
std::string arcs(const Arcs& diagram);

/// About `wanted` round numbers that cover [low, high].
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace longhand::app::html
