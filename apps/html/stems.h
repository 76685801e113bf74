#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhand::app::html {

/// A chart with one thin bar per value, upwards or downwards from zero. Only the largest values are
/// labelled.
struct Stems {
  std::vector<double> values;
  std::vector<std::string> names;  // the names of all values
  std::int64_t named = 3;
};
std::string stems(const Stems& diagram);

}  // namespace longhand::app::html
