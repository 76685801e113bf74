#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app::html {

/// A matrix drawn as squares. The larger a value, the darker its square. Each square has a tooltip
/// with its value. Labels have a fixed font size. If there are many rows or columns, the squares
/// are smaller, and only some rows and columns are labelled.
struct HeatMap {
  std::vector<std::string> rows = {}, columns = {};  // labels; may be empty
  std::int64_t height = 0, width = 0;
  std::vector<double> values = {};  // height * width values, row by row
  double full = 1;                  // value that has the full colour
  // Row and column of each outlined square.
  std::vector<std::pair<std::int64_t, std::int64_t>> outlined = {};
};
std::string heat_map(const HeatMap& map);

/// A legend of the colours of heat maps, from 0 to `full`.
std::string colour_scale(double full, const std::string& meaning);

}  // namespace longhand::app::html
