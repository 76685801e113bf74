#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/html/chart.h"
#include "apps/run/config.h"
#include "apps/run/evaluation.h"

namespace longhand::app {

/// An option of a task and the values it takes.
struct SweepAxis {
  std::string option;
  std::vector<std::string> values;
};
/// Parses "length=10,20,50", "length=2..100", "length=10..100:10" and mixtures of them.
SweepAxis parse_axis(std::string_view text);

struct SweepPoint {
  std::vector<std::string> values;  // one per axis, in order
  std::shared_ptr<const tasks::Task> task;
  tasks::Tally tally = {};
};

/// A run's task at every combination of the axes' values, the last axis fastest. An invalid value
/// is refused here, before anything is scored.
std::vector<SweepPoint> sweep_points(const Config& config, const std::vector<SweepAxis>& axes);
/// Scores a model at each point.
void sweep(nn::Decoder& model, std::vector<SweepPoint>& points, const EvaluationOptions& options);

/// "length=50 repeat=3"
std::string name_of(const SweepPoint& point, const std::vector<SweepAxis>& axes);

/// A metric against the first axis, whose values must be numbers, with Wilson's intervals: one
/// series per combination of the other axes. Names start with `name`.
std::vector<html::Series> sweep_series(const std::string& name,
                                       const std::vector<SweepPoint>& points,
                                       const std::vector<SweepAxis>& axes, std::string_view metric);

/// The same for several runs scored at the same points: means over runs, and the range from minimum
/// to maximum; a single run is treated as above.
std::vector<html::Series> sweep_series_over(const std::string& name,
                                            const std::vector<std::vector<SweepPoint>>& runs,
                                            const std::vector<SweepAxis>& axes,
                                            std::string_view metric);

/// The charts of every metric of a sweep, as HTML.
std::string sweep_charts(const std::vector<SweepPoint>& points, const std::vector<SweepAxis>& axes);

}  // namespace longhand::app
