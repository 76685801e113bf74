#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// A chart of parallel coordinates: vertical axes side by side, and for each training run a line
/// that crosses all axes. It shows which settings lead to which results.
struct ParallelCoordinates {
  struct Axis {
    std::string name;
    std::vector<std::string> marks;  // labels from the lower to the upper end, evenly spaced
  };
  struct Line {
    std::vector<double> at;  // position on each axis, from 0 to 1
    double share = 0;        // share of the full colour, from 0 to 1
    std::string title = {};  // tooltip
  };
  std::vector<Axis> axes;
  std::vector<Line> lines;  // later lines are drawn over earlier ones
};
std::string parallel_coordinates(const ParallelCoordinates& picture);

}  // namespace longhand::app::html
