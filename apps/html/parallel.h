#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// Parallel coordinates: vertical axes side by side, and a line through all of them for each item,
/// which shows which settings give which result.
struct ParallelCoordinates {
  struct Axis {
    std::string name;
    std::vector<std::string> marks;  // from the lower end to the upper one, evenly spaced
  };
  struct Line {
    std::vector<double> at;  // position on each axis, from 0 to 1
    double share = 0;        // intensity of the strong colour
    std::string title = {};  // shown under the pointer
  };
  std::vector<Axis> axes;
  std::vector<Line> lines;  // later lines are on top
};
std::string parallel_coordinates(const ParallelCoordinates& picture);

}  // namespace longhand::app::html
