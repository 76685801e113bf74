#pragma once

#include <string>
#include <vector>

namespace longhand::app::html {

/// Upright axes side by side and a line through all of them for each thing: which choices go with
/// which result is seen at a glance.
struct ParallelCoordinates {
  struct Axis {
    std::string name;
    std::vector<std::string> marks;  // from the lower end to the upper one, evenly spaced
  };
  struct Line {
    std::vector<double> at;  // a share of each axis, from 0 to 1
    double share = 0;        // of the strong colour; the rest is faint
    std::string title = {};  // told where the pointer rests
  };
  std::vector<Axis> axes;
  std::vector<Line> lines;  // the last ones lie on top
};
std::string parallel_coordinates(const ParallelCoordinates& picture);

}  // namespace longhand::app::html
