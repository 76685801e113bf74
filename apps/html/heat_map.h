#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app::html {

/// A matrix as squares, the darker the larger; the value is told where the pointer rests. It keeps
/// its size, with letters that can be read: of many rows or columns only some carry their labels.
struct HeatMap {
  std::vector<std::string> rows = {}, columns = {};  // labels; empty: none
  std::int64_t height = 0, width = 0;
  std::vector<double> values = {};  // height * width, row by row
  double full = 1;                  // the value painted in full colour
  std::vector<std::pair<std::int64_t, std::int64_t>> outlined = {};  // squares, by row and column
};
std::string heat_map(const HeatMap& map);

/// The colours of such maps and what they stand for, from 0 to `full`.
std::string colour_scale(double full, const std::string& meaning);

}  // namespace longhand::app::html
