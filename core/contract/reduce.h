#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_j = alpha sum_i x_ij. The gradient of a bias is such a sum. y [columns] has the master type:
/// f64 if x is f64, otherwise f32.
struct ColumnSum {
  static constexpr std::string_view name = "column_sum";
  Tensor x;
  double alpha = 1;
  Target y;
};

enum class Reduction { sum, largest, smallest, square_sum, nonfinite };
std::string_view name_of(Reduction reduction);

/// y_i is the reduction of x_ij over j. y [rows] has the master type: f64 if x is f64, otherwise
/// f32. The reduction `nonfinite` counts infinities and NaNs. For a row without entries, `largest`
/// is -infinity, `smallest` is infinity, and the other reductions are 0. If a row contains a NaN,
/// its sum, maximum, minimum and sum of squares are NaN.
struct Reduce {
  static constexpr std::string_view name = "reduce";
  Reduction reduction{};
  Tensor x, y;
};

void check(const ColumnSum& op);
void check(const Reduce& op);

}  // namespace longhand
