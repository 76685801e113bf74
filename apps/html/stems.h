#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhand::app::html {

/// A thin bar for each of many values, up or down from zero. The largest ones are labelled.
struct Stems {
  std::vector<double> values;
  std::vector<std::string> names;  // of all values
  std::int64_t named = 3;
};
std::string stems(const Stems& diagram);

}  // namespace longhand::app::html
