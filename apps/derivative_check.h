#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/expression.h"

namespace longhand::app {

/// A difference quotient and an estimate of its error.
struct Quotient {
  double value = 0, error = 0;
};

/// d f / d variable at a point. Central difference quotients with smaller and smaller steps are
/// extrapolated to step 0 (Ridders). The error is the distance between neighbouring extrapolations.
Quotient difference_quotient(const Expression& f, const std::string& variable,
                             std::map<std::string, double> at);

/// Compares a given derivative with difference quotients at random points between low and high.
/// Points at which f is not finite, or at which its quotient is inaccurate, are skipped.
struct DerivativeCheck {
  struct Row {
    std::map<std::string, double> at;
    double typed = 0;
    Quotient quotient;
    bool right = false;
  };
  std::vector<Row> rows;
  // number of skipped points
  std::int64_t without = 0;
  // Describes how the given derivative differs, such as "the negative"; may be empty.
  std::string hint;
  bool right() const;
};
DerivativeCheck check_derivative(const Expression& f, const std::string& variable,
                                 const Expression& typed, double low, double high,
                                 std::uint64_t seed);

}  // namespace longhand::app
