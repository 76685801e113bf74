#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "tasks/statistics.h"

/// Recipes that measure how errors fall as the number of training samples or the width grows, and
/// extrapolate to the papers' sizes. The tasks are Flip-Flop, chains and sorting.
namespace longhand::app::scaling {

/// A result printed in a paper: a share of errors or a loss. 0 means that the paper rounds it to 0.
using Printed = std::optional<double>;

struct StudiedModel {
  std::string id, name;
  Settings settings;
};

/// A quantity measured for a finished run on new samples.
struct Measure {
  std::string name;
  std::string distribution;         // distribution of the task; empty: the training distribution
  Settings task;                    // options of the task that are changed for this measure
  std::string metric;               // metric whose errors are counted; empty: the mean loss
  std::vector<Printed> paper = {};  // the paper's result for each model
  bool is_share() const { return !metric.empty(); }
};

/// A scaling study. Each of its models is trained in two ways: at one width with several numbers of
/// samples, and with the middle number of samples at several widths.
struct Study {
  std::string task;
  Settings settings;  // settings shared by all runs
  std::vector<StudiedModel> models;
  std::vector<Measure> measures;
  std::int64_t batch = 0;
  std::vector<std::int64_t> steps;  // numbers of steps, with ratios such as 1 : 4 : 16
  std::vector<std::int64_t> widths;
  std::int64_t width = 0;    // width of the runs with varying numbers of samples
  std::int64_t inner = 0;    // feed-forward width divided by the model's width; 0: the default
  double rate = 0;           // learning rate at `width`; at other widths proportional to 1 / width
  std::int64_t warm_up = 0;  // warm-up steps; at most a third of a run's steps
  std::int64_t test_samples = 0;
  std::int64_t paper_samples = 0;  // number of samples in the paper's training
  // Text of the report that states what is measured, and which sizes differ from the paper's.
  std::string remarks = {};

  std::int64_t middle_steps() const { return steps[steps.size() / 2]; }
};

/// The error of one run in one measure.
struct Scored {
  double size = 0;          // number of training samples, or width of the model
  double error = 0;         // share of wrong answers, or loss
  std::int64_t trials = 0;  // number of answers, if the error is a share
  bool none_wrong = false, all_wrong = false;
};

/// The errors of all runs of one model in one measure: of the runs with different numbers of
/// training samples, and of the runs with different widths.
struct Line {
  std::vector<Scored> by_samples, by_width;
};

using Lines = std::vector<std::vector<Line>>;  // lines[measure][model]

/// The result of a fit: a power law, or the reason why none was fitted.
struct Fit {
  std::optional<tasks::PowerLaw> law;
  std::string why_none;
  std::int64_t none_wrong = 0;
};

/// Fits a power law of the error in the size (number of samples or width). Points at which every
/// answer is wrong are excluded, because the error does not fall yet at such small sizes.
Fit fit(const std::vector<Scored>& points);

/// Adds the rows, tables and charts of a study to the result.
void tell(const Study& study, const Lines& lines, RecipeResult& result);

}  // namespace longhand::app::scaling
