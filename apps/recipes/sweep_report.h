#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/halving.h"

namespace longhand::app {

using Texts = std::vector<std::string>;

/// A setting and the values it takes.
struct GridAxis {
  std::string name, key;  // name as typed, key in config.ini
  Texts values;
};

/// A combination of the grid's values, with its runs' scores.
struct GridCell {
  std::vector<std::size_t> choice;  // per axis
  Texts runs;                       // names of folders
  std::vector<Config> configs;
  std::vector<double> scores;  // of its runs, after its last stage
  std::vector<double> means;   // mean over runs, after each of its stages
};

/// The stages of a sweep, one if everything is trained to the end, and the cells in each.
struct GridStages {
  std::vector<HalvingStage> all;
  bool is_last(std::size_t stage) const { return stage + 1 == all.size(); }
};

/// Prints the table of a finished sweep, best first, and writes OUT/report.html.
void report_sweep(const Config& base, const std::vector<GridAxis>& axes,
                  std::vector<GridCell> cells, const GridStages& stages,
                  const std::filesystem::path& out, bool json);

}  // namespace longhand::app
