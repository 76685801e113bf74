#include "apps/html/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "apps/html/page.h"
#include "apps/html/svg.h"

namespace longhand::app::html {
namespace {

/// An axis of a chart, which maps data values to pixels.
class Axis {
 public:
  Axis(double low, double high, bool log, double from, double to)
      : low_(low), high_(high), log_(log), from_(from), to_(to) {
    if (log_ && !(high_ > 0)) high_ = 1;  // 0 has no logarithm
    if (log_ && !(low_ > 0)) low_ = high_ / 1000;
    if (!(low_ < high_)) {
      const double margin = std::max(std::abs(low_) * 0.1, 1e-9);
      if (!log_) low_ -= margin;
      high_ += margin;
    }
  }
  bool holds(double value) const { return value >= low_ && value <= high_; }
  bool shows(double value) const { return std::isfinite(value) && (!log_ || value > 0); }
  double at(double value) const {
    const double share =
        log_ ? (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_))
             : (value - low_) / (high_ - low_);
    return from_ + (to_ - from_) * std::clamp(share, 0.0, 1.0);
  }
  std::vector<double> ticks() const {
    if (!log_) return html::ticks(low_, high_, 5);
    std::vector<double> marks;
    const double first = std::floor(std::log10(low_)), last = std::ceil(std::log10(high_));
    const double stride = std::max(1.0, std::ceil((last - first) / 10));
    for (double power = first; power <= last; power += stride) {
      for (const double digit : {1.0, 2.0, 5.0}) {
        const double mark = digit * std::pow(10.0, power);
        const bool crowded = last - first > 3 && digit != 1.0;
        if (mark >= low_ && mark <= high_ && !crowded) marks.push_back(mark);
      }
    }
    // If the axis contains fewer than two logarithmic marks, evenly spaced marks are used instead.
    return marks.size() < 2 ? html::ticks(low_, high_, 5) : marks;
  }

 private:
  double low_, high_;
  bool log_;
  double from_, to_;
};

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void see(double value, bool log) {
    if (!std::isfinite(value) || (log && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void settle() {
    if (low > high) low = 0, high = 1;
  }
};

/// A polygon that fills the band between `low` and `high` of a series' points. Its outline runs
/// forwards along the upper edge and backwards along the lower edge.
std::string band(const Series& series, const Axis& x, const Axis& y, std::size_t hue) {
  std::string there, back;
  for (const Point& p : series.points) {
    if (!p.low || !p.high || !x.shows(p.x) || !y.shows(*p.low) || !y.shows(*p.high)) continue;
    there += pixels(x.at(p.x)) + "," + pixels(y.at(*p.high)) + " ";
    back = pixels(x.at(p.x)) + "," + pixels(y.at(*p.low)) + " " + back;
  }
  if (there.empty()) return {};
  return "<polygon points=\"" + there + back + "\" fill=\"" + colour(hue) +
         "\" opacity=\"0.18\"/>\n";
}

/// A dot or a diamond with a tooltip.
std::string dot_or_diamond(double x, double y, bool diamond, std::size_t hue,
                           const std::string& title) {
  const std::string look = " fill=\"" + colour(hue) + "\">";
  const std::string said = title.empty() ? "" : "<title>" + title + "</title>";
  if (!diamond) {
    return "<circle cx=\"" + pixels(x) + "\" cy=\"" + pixels(y) + "\" r=\"3\"" + look + said +
           "</circle>\n";
  }
  constexpr double half = 6.5;
  std::string corners;
  for (const auto& [right, down] : {std::pair{0, -1}, {1, 0}, {0, 1}, {-1, 0}}) {
    corners += pixels(x + half * right) + "," + pixels(y + half * down) + " ";
  }
  return "<polygon points=\"" + corners + "\" stroke=\"var(--text)\"" + look + said +
         "</polygon>\n";
}

std::string curve(const Series& series, const Axis& x, const Axis& y, std::size_t hue) {
  std::string path, dots, values;
  bool down = false;  // true while a line is being drawn, false after a gap
  for (const Point& p : series.points) {
    if (!x.shows(p.x) || !y.shows(p.y) || !y.holds(p.y)) {
      down = false;
      continue;
    }
    const std::string at = pixels(x.at(p.x)) + " " + pixels(y.at(p.y));
    path += (down ? "L" : "M") + at + " ";
    down = series.line;
    values += (values.empty() ? "" : " ") + number(p.x, 9) + " " + number(p.y);
    if (series.marks) {
      dots += dot_or_diamond(x.at(p.x), y.at(p.y), series.diamonds, hue,
                             escape(series.name) + ": " + number(p.x) + ", " + number(p.y));
    }
  }
  // When the mouse pointer is over the chart, the script hover.js shows the values of the curves
  // near the pointer. It reads them from the attribute data-values.
  return "<path d=\"" + path + "\" data-name=\"" + escape(series.name) + "\" data-values=\"" +
         values + "\" fill=\"none\" stroke=\"" + colour(hue) + "\" stroke-width=\"1.8\"" +
         (series.dashed ? " stroke-dasharray=\"5 4\"" : "") + "/>\n" + dots;
}

constexpr double legend_width = 645;

/// A legend entry: a sample of the series' line, and its name.
std::string legend_entry(const Series& series, std::size_t hue, double x, double y) {
  std::string sample = "<line x1=\"" + pixels(x) + "\" y1=\"" + pixels(y) + "\" x2=\"" +
                       pixels(x + 22) + "\" y2=\"" + pixels(y) + "\" stroke=\"" + colour(hue) +
                       "\" stroke-width=\"2.5\"" +
                       (series.dashed ? " stroke-dasharray=\"5 4\"" : "") + "/>\n";
  if (!series.line) sample = dot_or_diamond(x + 11, y, series.diamonds, hue, "");
  return sample + label(x + 28, y + 4, "start", series.name);
}

/// Number of legend entries per row: at most three. Longer names allow fewer.
std::size_t legend_columns(const std::vector<Series>& all) {
  // Width of a letter, and of an entry's line sample with margins, in pixels.
  constexpr double letter = 6.5, around = 44;
  std::size_t longest = 0;
  for (const Series& series : all) {
    if (series.in_legend) longest = std::max(longest, series.name.size());
  }
  const double each = around + letter * static_cast<double>(longest);
  return std::clamp<std::size_t>(static_cast<std::size_t>(legend_width / each), 1, 3);
}

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  if (!(low < high) || !std::isfinite(low) || !std::isfinite(high)) return {low};
  const double raw = (high - low) / std::max(1, wanted);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double digit : {1.0, 2.0, 5.0}) {
    if (digit * power >= raw * 0.999) {
      step = digit * power;
      break;
    }
  }
  std::vector<double> marks;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
    marks.push_back(k * step + 0.0);  // adding 0.0 turns -0 into 0
  }
  return marks;
}

std::string line_chart(const LineChart& chart) {
  constexpr double width = 720, height = 340, right = 16, top = 14, bottom = 48;
  Extent xs, ys;
  for (const Series& series : chart.series) {
    for (const Point& p : series.points) {
      xs.see(p.x, chart.log_x);
      ys.see(p.y, chart.log_y);
      if (p.low) ys.see(*p.low, chart.log_y);
      if (p.high) ys.see(*p.high, chart.log_y);
    }
  }
  if (chart.y_low) ys.low = *chart.y_low;
  if (chart.y_high) ys.high = *chart.y_high;
  xs.settle();
  ys.settle();
  std::vector<std::size_t> named;  // indices of the series that have a legend entry
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const Series& series = chart.series[i];
    if (series.in_legend && !series.name.empty()) named.push_back(i);
  }
  const std::size_t columns = legend_columns(chart.series);
  const std::size_t legend_rows = (named.size() + columns - 1) / columns;
  const double legend = 20.0 * static_cast<double>(legend_rows);
  const Axis y(ys.low, ys.high, chart.log_y, height - bottom, top);
  std::size_t longest = 0;
  for (const double mark : y.ticks()) longest = std::max(longest, mark_label(mark).size());
  const double left = std::max(62.0, 24 + 7 * static_cast<double>(longest));
  const Axis x(xs.low, xs.high, chart.log_x, left, width - right);

  std::string svg = open(width, height + legend);
  for (const double mark : y.ticks()) {
    svg += rule(left, y.at(mark), width - right, y.at(mark));
    svg += label(left - 6, y.at(mark) + 4, "end", mark_label(mark));
  }
  for (const double mark : chart.x_marks.empty() ? x.ticks() : chart.x_marks) {
    svg += rule(x.at(mark), height - bottom, x.at(mark), height - bottom + 4);
    svg += label(x.at(mark), height - bottom + 18, "middle", mark_label(mark));
  }
  svg += label((left + width - right) / 2, height - 12, "middle", chart.x_label);
  const std::string middle = pixels((top + height - bottom) / 2);
  svg += label(14, (top + height - bottom) / 2, "middle", chart.y_label,
               "transform=\"rotate(-90 14 " + middle + ")\"");
  const auto hue = [&](std::size_t i) { return chart.series[i].hue.value_or(i); };
  for (std::size_t i = 0; i < chart.series.size(); ++i) svg += band(chart.series[i], x, y, hue(i));
  for (std::size_t i = 0; i < chart.series.size(); ++i) svg += curve(chart.series[i], x, y, hue(i));
  for (std::size_t i = 0; i < named.size(); ++i) {
    const auto row = static_cast<double>(i / columns), column = static_cast<double>(i % columns);
    svg += legend_entry(chart.series[named[i]], hue(named[i]),
                        left + column * legend_width / static_cast<double>(columns),
                        height + 6 + 20.0 * row);
  }
  return svg + "</svg>\n";
}

std::string arcs(const Arcs& diagram) {
  constexpr double step = 16, upper = 24, lower = 130;
  const double width = step * static_cast<double>(diagram.tokens.size()) + 16;
  std::string svg = open(std::max(width, 200.0), lower + 24, true);
  const auto at = [&](std::int64_t i) { return 16 + step * static_cast<double>(i); };
  for (std::size_t i = 0; i < diagram.selected.size(); ++i) {
    const std::int64_t to = diagram.selected[i];
    if (to < 0) continue;
    const bool strong = i < diagram.marked.size() && diagram.marked[i];
    svg += "<line x1=\"" + pixels(at(static_cast<std::int64_t>(i))) + "\" y1=\"" +
           pixels(lower - 12) + "\" x2=\"" + pixels(at(to)) + "\" y2=\"" + pixels(upper + 5) +
           "\" stroke=\"" + (strong ? colour(1) : "var(--rule)") + "\" stroke-width=\"" +
           (strong ? "1.8" : "1") + "\"/>\n";
  }
  for (std::size_t i = 0; i < diagram.tokens.size(); ++i) {
    const bool strong = i < diagram.marked.size() && diagram.marked[i];
    const std::string look = std::string("style=\"font-family:monospace;fill:") +
                             (strong ? "var(--c1);font-weight:bold" : "var(--text)") + "\"";
    for (const double y : {upper, lower}) {
      svg += label(at(static_cast<std::int64_t>(i)), y, "middle", diagram.tokens[i], look);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace longhand::app::html
