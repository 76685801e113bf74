#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "tasks/statistics.h"

/// Recipes that measure how errors fall with the number of training samples and with the width, and
/// extrapolate to the papers' sizes: Flip-Flop, chains and sorting.
namespace longhand::app::scaling {

/// A figure printed in a paper, as an error or a loss. 0 means that it rounds to 0.
using Printed = std::optional<double>;

struct StudiedModel {
  std::string id, name;
  Settings settings;
};

/// A measurement of a finished run on new samples.
struct Measure {
  std::string name;
  std::string distribution;         // of the task; empty: as in training
  Settings task;                    // overrides of the task's options
  std::string metric;               // a share; empty: the mean loss
  std::vector<Printed> paper = {};  // per model
  bool is_share() const { return !metric.empty(); }
};

/// Models trained with several numbers of samples at one width, and with several widths at the
/// middle number of samples.
struct Study {
  std::string task;
  Settings settings;  // of every run
  std::vector<StudiedModel> models;
  std::vector<Measure> measures;
  std::int64_t batch = 0;
  std::vector<std::int64_t> steps;  // 1, 4 and 16 times, or more
  std::vector<std::int64_t> widths;
  std::int64_t width = 0;    // width of the runs by samples
  std::int64_t inner = 0;    // multiple of the width; 0: the default
  double rate = 0;           // at that width; proportional to 1 / width
  std::int64_t warm_up = 0;  // at most a third of the steps
  std::int64_t test_samples = 0;
  std::int64_t paper_samples = 0;  // samples in the paper's training
  std::string remarks = {};        // how sizes differ from the paper's, and what is measured

  std::int64_t middle_steps() const { return steps[steps.size() / 2]; }
};

/// One run's figure in one measure.
struct Scored {
  double size = 0;          // samples or width
  double error = 0;         // share of wrong answers, or a loss
  std::int64_t trials = 0;  // number of trials of a share
  bool none_wrong = false, all_wrong = false;
};

/// The points of one model in one measure.
struct Line {
  std::vector<Scored> by_samples, by_width;
};

using Lines = std::vector<std::vector<Line>>;  // per measure, per model

/// A fit, or the reason why there is none.
struct Fit {
  std::optional<tasks::PowerLaw> law;
  std::string why_none;
  std::int64_t none_wrong = 0;
};

/// Points at which everything is wrong are left out, because the error has not begun to fall.
Fit fit(const std::vector<Scored>& points);

/// Adds rows, tables and charts.
void tell(const Study& study, const Lines& lines, RecipeResult& result);

}  // namespace longhand::app::scaling
