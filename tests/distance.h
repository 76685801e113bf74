#pragma once

#include <algorithm>
#include <cmath>
#include <vector>
#include "tests/check.h"

namespace longhand {

/// The largest |got - expected|, divided by the largest |expected|.
inline double distance(const std::vector<double>& expected, const std::vector<double>& got) {
  BOOST_REQUIRE(expected.size() == got.size());
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double difference = std::abs(expected[i] - got[i]);
    worst = difference <= worst ? worst : difference;  // propagates NaN
  }
  return largest > 0 ? worst / largest : worst;
}

}  // namespace longhand
