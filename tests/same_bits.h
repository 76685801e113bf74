#pragma once

#include <algorithm>
#include <cmath>

#include "autograd/tolerance.h"

namespace longhand {

/// True if all results have the same bits. NaN counts as equal to NaN, because processors choose
/// different bits for it.
inline bool same_bits(const tolerance::Results& a, const tolerance::Results& b) {
  const auto same = [](double x, double y) {
    return std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
  };
  return std::ranges::equal(a, b, [&](const auto& one, const auto& other) {
    return one.first == other.first && one.second.shape == other.second.shape &&
           std::ranges::equal(one.second.values, other.second.values, same);
  });
}

}  // namespace longhand
