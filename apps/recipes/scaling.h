#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "tasks/statistics.h"

/// Recipes that measure how errors fall as the number of training samples or the width grows, and
/// extrapolate to the papers' sizes. The tasks are Flip-Flop, chains and sorting.
namespace longhand::app::scaling {

/// A number printed in a paper: a share of errors or a loss. 0 means that it was rounded to 0.
using Printed = std::optional<double>;

struct StudiedModel {
  std::string id, name;
  Settings settings;
};

/// A quantity measured for a finished run on new samples.
struct Measure {
  std::string name;
  std::string distribution;         // distribution of the task; empty: the training distribution
  Settings task;                    // overrides options of the task
  std::string metric;               // metric whose errors are counted; empty: the mean loss
  std::vector<Printed> paper = {};  // the paper's value, per model
  bool is_share() const { return !metric.empty(); }
};

/// A study of models. They are trained with several numbers of samples at one width, and with
/// several widths at the middle number of samples.
struct Study {
  std::string task;
  Settings settings;  // settings shared by all runs
  std::vector<StudiedModel> models;
  std::vector<Measure> measures;
  std::int64_t batch = 0;
  std::vector<std::int64_t> steps;  // numbers of steps, with ratios such as 1 : 4 : 16
  std::vector<std::int64_t> widths;
  std::int64_t width = 0;    // width of the runs with varying numbers of samples
  std::int64_t inner = 0;    // feed-forward width as a multiple of the width; 0: the default
  double rate = 0;           // learning rate at `width`; at other widths proportional to 1 / width
  std::int64_t warm_up = 0;  // warm-up steps; at most a third of a run's steps
  std::int64_t test_samples = 0;
  std::int64_t paper_samples = 0;  // number of samples in the paper's training
  std::string remarks = {};        // how sizes differ from the paper's, and what is measured

  std::int64_t middle_steps() const { return steps[steps.size() / 2]; }
};

/// The error of one run in one measure.
struct Scored {
  double size = 0;          // number of samples, or width
  double error = 0;         // share of wrong answers, or loss
  std::int64_t trials = 0;  // number of answers, if the error is a share
  bool none_wrong = false, all_wrong = false;
};

/// The measured errors of one model in one measure.
struct Line {
  std::vector<Scored> by_samples, by_width;
};

using Lines = std::vector<std::vector<Line>>;  // lines[measure][model]

/// A fitted power law, or the reason why there is none.
struct Fit {
  std::optional<tasks::PowerLaw> law;
  std::string why_none;
  std::int64_t none_wrong = 0;
};

/// Fits a power law. Points at which every answer is wrong are excluded, because the error does not
/// yet fall there.
Fit fit(const std::vector<Scored>& points);

/// Adds the rows, tables and charts of a study to the result.
void tell(const Study& study, const Lines& lines, RecipeResult& result);

}  // namespace longhand::app::scaling
