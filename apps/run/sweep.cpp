#include "apps/run/sweep.h"

#include <algorithm>
#include <charconv>

#include "apps/html/page.h"
#include "core/commas.h"
#include "core/quote.h"

namespace longhand::app {
namespace {

// Maximum number of values of an axis, and maximum number of points of a sweep.
constexpr std::int64_t most_values = 1000;

/// Parses a range "2..100:2", or a single value, which may be any text.
void add_values(std::string_view item, std::vector<std::string>& values) {
  const std::size_t dots = item.find("..");
  if (dots == std::string_view::npos) {
    LONGHAND_CHECK(!item.empty(), "expected a value, got none");
    LONGHAND_CHECK(std::ssize(values) < most_values, "expected at most ", most_values,
                   " values, got more");
    values.emplace_back(item);
    return;
  }
  const auto integer = [&](std::string_view text) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    LONGHAND_CHECK(error == std::errc() && end == text.data() + text.size(),
                   "expected a range such as 10..100:10, got ", quote(item));
    return number;
  };
  std::string_view last = item.substr(dots + 2);
  std::int64_t step = 1;
  if (const std::size_t colon = last.find(':'); colon != std::string_view::npos) {
    step = integer(last.substr(colon + 1));
    last = last.substr(0, colon);
  }
  const std::int64_t from = integer(item.substr(0, dots)), to = integer(last);
  LONGHAND_CHECK(step >= 1 && from <= to && from >= -1'000'000'000 && to <= 1'000'000'000,
                 "expected a range such as 10..100:10, got ", quote(item));
  const std::int64_t more = (to - from) / step + 1;
  LONGHAND_CHECK(std::ssize(values) + more <= most_values, "expected at most ", most_values,
                 " values, got ", std::ssize(values) + more);
  for (std::int64_t i = 0; i < more; ++i) values.push_back(std::to_string(from + i * step));
}

}  // namespace

SweepAxis parse_axis(std::string_view text) {
  const std::size_t equals = text.find('=');
  LONGHAND_CHECK(equals != std::string_view::npos && equals > 0, "expected OPTION=VALUES, got ",
                 quote(text));
  SweepAxis axis{.option = std::string(text.substr(0, equals)), .values = {}};
  for (const std::string_view values : at_commas(text.substr(equals + 1))) {
    add_values(values, axis.values);
  }
  return axis;
}

std::vector<CliFlag> scoring_options() {
  return {{"on",
           "NAME",
           "distribution to score; may be repeated; default: all distributions",
           {},
           true},
          {"sweep",
           "OPTION=VALUES",
           "task option to vary, and its values, such as length=10..50:10; may be repeated",
           {},
           true},
          {"figure", "FILE",
           "with --sweep: write an HTML page that plots the metrics against the values"},
          {"samples", "N", "number of sequences per distribution", "1000"},
          {"reading", "HOW",
           "answer tokens that the model reads: forced or decoded; forced: the correct tokens; "
           "decoded: its own predictions",
           "forced"}};
}

std::vector<SweepAxis> axes_from(const Arguments& arguments) {
  const bool sweeps = arguments.given("sweep");
  if (sweeps && arguments.given("on")) wrong_usage("--on and --sweep cannot be combined");
  if (!sweeps && arguments.given("figure")) wrong_usage("--figure needs --sweep");
  std::vector<SweepAxis> axes;
  for (const std::string& axis : arguments.words("sweep")) {
    axes.push_back(as_usage("sweep", [&] { return parse_axis(axis); }));
  }
  return axes;
}

Reading reading_from(const Arguments& arguments) {
  const auto reading = reading_from_name(arguments.word("reading"));
  if (!reading) {
    wrong_usage("--reading: expected forced or decoded, got ", quote(arguments.word("reading")));
  }
  return *reading;
}

std::vector<std::string> distributions_from(const Arguments& arguments, const Config& config) {
  std::vector<std::string> names = arguments.words("on");
  if (!names.empty()) return names;
  for (const tasks::Distribution& d : config.distributions()) names.push_back(d.name);
  return names;
}

std::vector<SweepPoint> sweep_points(const Config& config, const std::vector<SweepAxis>& axes) {
  std::vector<SweepPoint> points{{}};
  for (const SweepAxis& axis : axes) {
    std::vector<SweepPoint> longer;
    for (const SweepPoint& point : points) {
      for (const std::string& value : axis.values) {
        LONGHAND_CHECK(std::ssize(longer) < most_values, "expected at most ", most_values,
                       " points in a sweep, got more");
        longer.push_back(point);
        longer.back().values.push_back(value);
      }
    }
    points = std::move(longer);
  }
  for (SweepPoint& point : points) {
    tasks::OptionValues values = config.task_values();
    for (std::size_t i = 0; i < axes.size(); ++i) values.set(axes[i].option, point.values[i]);
    point.task = config.positioned(config.kind().make(values));
  }
  return points;
}

void sweep(nn::Decoder& model, std::vector<SweepPoint>& points, const EvaluationOptions& options) {
  for (SweepPoint& point : points) point.tally = evaluate(model, *point.task, options);
}

std::string name_of(const SweepPoint& point, const std::vector<SweepAxis>& axes) {
  std::string name;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    name += (i == 0 ? "" : " ") + axes[i].option + "=" + point.values[i];
  }
  return name;
}

std::vector<html::Series> sweep_series(const std::string& name,
                                       const std::vector<SweepPoint>& points,
                                       const std::vector<SweepAxis>& axes,
                                       std::string_view metric) {
  std::vector<html::Series> all;
  for (const SweepPoint& point : points) {
    std::string own = name;
    for (std::size_t i = 1; i < axes.size(); ++i) {
      own += (own.empty() ? "" : ", ") + axes[i].option + " " + point.values[i];
    }
    auto series = std::ranges::find(all, own, &html::Series::name);
    if (series == all.end()) {
      all.push_back({.name = own, .points = {}, .marks = axes[0].values.size() < 40});
      series = all.end() - 1;
    }
    const std::string& x = point.values[0];
    html::Point at;
    const auto [end, error] = std::from_chars(x.data(), x.data() + x.size(), at.x);
    LONGHAND_CHECK(error == std::errc() && end == x.data() + x.size(),
                   "--figure: expected numbers as the values of option ", quote(axes[0].option),
                   ", got ", quote(x));
    const tasks::Metric& measured = point.tally.at(metric);
    at.y = measured.mean();
    if (measured.is_share) {
      const auto interval = tasks::wilson(measured.sum, static_cast<double>(measured.count));
      at.low = interval.low;
      at.high = interval.high;
    }
    series->points.push_back(at);
  }
  return all;
}

std::vector<html::Series> sweep_series_over(const std::string& name,
                                            const std::vector<std::vector<SweepPoint>>& runs,
                                            const std::vector<SweepAxis>& axes,
                                            std::string_view metric) {
  std::vector<html::Series> mean = sweep_series(name, runs.front(), axes, metric);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const auto other = sweep_series(name, runs[i], axes, metric);
    for (std::size_t s = 0; s < mean.size(); ++s) {
      for (std::size_t p = 0; p < mean[s].points.size(); ++p) {
        html::Point& at = mean[s].points[p];
        const double y = other[s].points[p].y;
        at.low = std::min(i == 1 ? at.y : *at.low, y);
        at.high = std::max(i == 1 ? at.y : *at.high, y);
        at.y += (y - at.y) / static_cast<double>(i + 1);
      }
    }
  }
  return mean;
}

std::string sweep_charts(const std::vector<SweepPoint>& points,
                         const std::vector<SweepAxis>& axes) {
  std::string content;
  for (const tasks::Metric& metric : points.front().tally.metrics()) {
    html::LineChart chart{.x_label = axes[0].option,
                          .y_label = metric.name,
                          .series = sweep_series("", points, axes, metric.name)};
    chart.y_low = 0;
    if (metric.is_share) chart.y_high = 1;
    content +=
        html::figure(line_chart(chart), metric.is_share ? metric.name + ", with 95% intervals"
                                                        : metric.name + ", mean over sequences");
  }
  return content;
}

}  // namespace longhand::app
