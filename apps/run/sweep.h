#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command.h"
#include "apps/html/chart.h"
#include "apps/run/config.h"
#include "apps/run/evaluation.h"

namespace longhand::app {

/// An option of a task and its values in a sweep.
struct SweepAxis {
  std::string option;
  std::vector<std::string> values;
};
/// Parses "length=10,20,50", "length=2..100", "length=10..100:10" and combinations of these forms.
SweepAxis parse_axis(std::string_view text);

/// The flags that select what a command scores: --on, --sweep, --figure, --samples and --reading.
std::vector<CliFlag> scoring_options();
/// The axes given with --sweep. Refuses --on together with --sweep, and --figure without --sweep.
std::vector<SweepAxis> axes_from(const Arguments& arguments);
/// The value of --reading.
Reading reading_from(const Arguments& arguments);
/// The distributions given with --on; default: all distributions of the run's task.
std::vector<std::string> distributions_from(const Arguments& arguments, const Config& config);

struct SweepPoint {
  std::vector<std::string> values;  // one value per axis, in the order of the axes
  std::shared_ptr<const tasks::Task> task;
  tasks::Tally tally = {};
};

/// The run's task at every combination of the axes' values. The last axis varies fastest. If a
/// value is invalid, throws here, before anything is scored.
std::vector<SweepPoint> sweep_points(const Config& config, const std::vector<SweepAxis>& axes);
/// Scores a model at every point and stores the scores in the points.
void sweep(nn::Decoder& model, std::vector<SweepPoint>& points, const EvaluationOptions& options);

/// The name of a point: "length=50 repeat=3".
std::string name_of(const SweepPoint& point, const std::vector<SweepAxis>& axes);

/// The curves of a chart. They show a metric, with Wilson's intervals, over the values of the first
/// axis, which must be numbers. There is one curve for each combination of the other axes' values.
/// The names of the curves start with `name`.
std::vector<html::Series> sweep_series(const std::string& name,
                                       const std::vector<SweepPoint>& points,
                                       const std::vector<SweepAxis>& axes, std::string_view metric);

/// Like sweep_series(), but for several runs that were scored at the same points. The series
/// contain the mean over runs, and the range from minimum to maximum. A single run has Wilson's
/// intervals.
std::vector<html::Series> sweep_series_over(const std::string& name,
                                            const std::vector<std::vector<SweepPoint>>& runs,
                                            const std::vector<SweepAxis>& axes,
                                            std::string_view metric);

/// The charts of all metrics of a sweep, as HTML.
std::string sweep_charts(const std::vector<SweepPoint>& points, const std::vector<SweepAxis>& axes);

}  // namespace longhand::app
