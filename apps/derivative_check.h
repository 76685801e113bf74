#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "apps/expression.h"

namespace longhand::app {

/// A derivative as difference quotients have it, and how far that may be off.
struct Quotient {
  double value = 0, error = 0;
};

/// d f / d variable at a point: central quotients over ever smaller steps, extrapolated to none
/// (Ridders); the error is how far neighbouring extrapolations are apart.
Quotient difference_quotient(const Expression& f, const std::string& variable,
                             std::map<std::string, double> at);

/// A typed derivative beside the quotients, at points drawn between low and high where both exist.
struct DerivativeCheck {
  struct Row {
    std::map<std::string, double> at;
    double typed = 0;
    Quotient quotient;
    bool right = false;
  };
  std::vector<Row> rows;
  std::int64_t without = 0;  // points where f or its quotient has no value
  std::string hint;          // what the typed one is everywhere, such as "the negative"; or empty
  bool right() const;
};
DerivativeCheck check_derivative(const Expression& f, const std::string& variable,
                                 const Expression& typed, double low, double high,
                                 std::uint64_t seed);

}  // namespace longhand::app
