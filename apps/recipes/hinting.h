#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/recipes/grid.h"
#include "apps/run/sweep.h"

/// What the recipes of task hinting share: decoders without positions that sort numbers or add one,
/// with and without hints and tempered softmax.
namespace longhand::app {

/// A model of the paper. `set` is the paper's size of its training set, which scales divide.
struct HintingModel {
  std::string task = "sorting";
  std::string hint = "none";
  bool tempered = false;
  std::string set = "160M";  // 1M, 10M, 40M or 160M
  int layers = 2;
  bool repetitions = false;  // a tenth of the inputs

  std::string id() const;  // of its folder
};

/// The run of a model at a scale, seed and settings of the options.
GridRun hinting_run(const HintingModel& model, const RecipeOptions& options);
std::vector<GridRun> hinting_runs(const std::vector<HintingModel>& models,
                                  const RecipeOptions& options);

/// What a scale tests with.
struct HintingTests {
  std::int64_t samples = 0;           // at each point
  std::vector<std::int64_t> columns;  // lengths in place of the paper's 50 and 100
  std::string lengths;                // of a sweep
  std::string repeated_lengths;       // of a sweep over rep(i, r)
};
HintingTests hinting_tests(Scale scale);

/// Scores the run of a model on its last checkpoint, decoded, at every point of the axes.
std::vector<SweepPoint> score_hinting(const HintingModel& model, const std::vector<SweepAxis>& axes,
                                      const RecipeOptions& options);
/// The model's run, loaded at its last checkpoint.
LoadedRun load_hinting(const HintingModel& model, const RecipeOptions& options);

/// Recipes whose finished runs the others use.
std::span<const std::string_view> beside_hinting();

/// A share of a tally with its interval, as a row of a report.
Row share_row(const std::string& row, const std::string& column, const tasks::Metric& metric,
              std::optional<double> paper = {});

/// A metric against the first axis, one chart for several models.
std::string model_chart(const std::vector<std::pair<std::string, std::vector<SweepPoint>>>& models,
                        const std::vector<SweepAxis>& axes, std::string_view metric);

/// How answers are scored.
std::string how_scored(const RecipeOptions& options);
/// What is counted, as HTML, and where a scale is not the paper's; the configurations of the runs.
void add_notes(RecipeResult& result, const std::string& counted,
               const std::vector<HintingModel>& models, const RecipeOptions& options);

}  // namespace longhand::app
