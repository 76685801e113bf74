#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/config.h"
#include "apps/run/halving.h"

namespace longhand::app {

using Texts = std::vector<std::string>;

/// A setting and the values it goes through.
struct GridAxis {
  std::string name, key;  // as it was typed, and of config.ini
  Texts values;
};

/// A place in the grid, with its runs' scores.
struct GridCell {
  std::vector<std::size_t> choice;  // of each axis
  Texts runs;                       // folders' names
  std::vector<Config> configs;
  std::vector<double> scores;  // of its runs, after its last stage
  std::vector<double> means;   // of them, after each stage it was in
};

/// The stages of a sweep, one where all is trained to the end, and which cells are in each.
struct GridStages {
  std::vector<HalvingStage> all;
  bool is_last(std::size_t stage) const { return stage + 1 == all.size(); }
};

/// Prints the table of a sweep that is done, the best first, and writes OUT/report.html.
void report_sweep(const Config& base, const std::vector<GridAxis>& axes,
                  std::vector<GridCell> cells, const GridStages& stages,
                  const std::filesystem::path& out, bool json);

}  // namespace longhand::app
