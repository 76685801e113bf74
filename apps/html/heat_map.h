#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace longhand::app::html {

/// A matrix as squares; larger values are darker, and the value is shown under the pointer. It has
/// a fixed size with readable letters. If there are many rows or columns, only some have labels.
struct HeatMap {
  std::vector<std::string> rows = {}, columns = {};  // labels; may be empty
  std::int64_t height = 0, width = 0;
  std::vector<double> values = {};  // height * width, row by row
  double full = 1;                  // value with the full colour
  // outlined squares, by row and column
  std::vector<std::pair<std::int64_t, std::int64_t>> outlined = {};
};
std::string heat_map(const HeatMap& map);

/// The colour scale of such maps, from 0 to `full`.
std::string colour_scale(double full, const std::string& meaning);

}  // namespace longhand::app::html
