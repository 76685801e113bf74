#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "tasks/statistics.h"

/// How errors fall with the samples trained on and with the width, and what the fall says of the
/// papers' own sizes: Flip-Flop, chains and sorting.
namespace longhand::app::scaling {

/// A figure that a paper prints, as an error or a loss. 0 is what it rounds to.
using Printed = std::optional<double>;

struct StudiedModel {
  std::string id, name;
  Settings settings;
};

/// Something that is measured of a finished run on fresh samples.
struct Measure {
  std::string name;
  std::string distribution;         // of the task; empty: as in training
  Settings task;                    // options of the task over the run's
  std::string metric;               // a share of the tally; empty: the mean loss
  std::vector<Printed> paper = {};  // of each model
  bool is_share() const { return !metric.empty(); }
};

/// Models by samples at one width, and by widths at the middle number of samples.
struct Study {
  std::string task;
  Settings settings;  // of every run
  std::vector<StudiedModel> models;
  std::vector<Measure> measures;
  std::int64_t batch = 0;
  std::vector<std::int64_t> steps;  // 1, 4 and 16 times, or more
  std::vector<std::int64_t> widths;
  std::int64_t width = 0;    // that of the runs by samples
  std::int64_t inner = 0;    // so many times the width; 0: the default
  double rate = 0;           // at that width; it falls as 1 / width
  std::int64_t warm_up = 0;  // but at most a third of the steps
  std::int64_t test_samples = 0;
  std::int64_t paper_samples = 0;  // that the paper trains on
  std::string remarks = {};        // where the sizes are not the paper's, and what is measured

  std::int64_t middle_steps() const { return steps[steps.size() / 2]; }
};

/// One run's figure in one measure.
struct Scored {
  double size = 0;          // samples or width
  double error = 0;         // a share that is wrong, or a loss
  std::int64_t trials = 0;  // that a share is of
  bool none_wrong = false, all_wrong = false;
};

/// Of one model in one measure.
struct Line {
  std::vector<Scored> by_samples, by_width;
};

using Lines = std::vector<std::vector<Line>>;  // of each measure, each model

/// A fit, or why there is none.
struct Fit {
  std::optional<tasks::PowerLaw> law;
  std::string why_none;
  std::int64_t none_wrong = 0;
};

/// Points at which all is wrong are left out: there the fall has not begun.
Fit fit(const std::vector<Scored>& points);

/// Adds rows, tables and charts.
void tell(const Study& study, const Lines& lines, RecipeResult& result);

}  // namespace longhand::app::scaling
