#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/halving.h"

namespace longhand::app {

using Texts = std::vector<std::string>;

/// A setting that a sweep varies, with its values.
struct GridAxis {
  std::string name, key;  // name: as typed by the user; key: as in config.ini
  Texts values;
};

/// A cell of the grid: a combination of values of its settings, with the scores of the runs that
/// have these settings.
struct GridCell {
  std::vector<std::size_t> choice;  // for each axis, the index of the value
  Texts runs;                       // names of the runs' folders
  std::vector<Config> configs;
  std::vector<double> scores;  // scores of the runs after the cell's last stage
  std::vector<double> means;   // mean score of the runs after each stage that the cell reached
};

/// The stages of a sweep by successive halving. A sweep that trains all runs to their end has one
/// stage.
struct GridStages {
  std::vector<HalvingStage> all;
  std::string score;  // the score that ranks the runs, such as "ood/sequences"
  bool is_last(std::size_t stage) const { return stage + 1 == all.size(); }
};

/// Prints the table of a finished sweep with the best cell first, and writes OUT/report.html.
void report_sweep(const Config& base, const std::vector<GridAxis>& axes,
                  std::vector<GridCell> cells, const GridStages& stages,
                  const std::filesystem::path& out, bool json);

}  // namespace longhand::app
