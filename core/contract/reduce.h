#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_j = alpha sum_i x_ij, which is the gradient of a bias. y [columns] of the master type.
struct ColumnSum {
  static constexpr std::string_view name = "column_sum";
  Tensor x;
  double alpha = 1;
  Target y;
};

enum class Reduction { sum, largest, smallest, square_sum, nonfinite };
std::string_view name_of(Reduction reduction);

/// y_i is the reduction of x_ij over j. y [rows] has the master type. `nonfinite` counts infinities
/// and NaNs. For a row without entries, `largest` is -infinity, `smallest` is infinity, and the
/// other reductions are 0. If a row contains a NaN, its sum, maximum, minimum and sum of squares
/// are NaN.
struct Reduce {
  static constexpr std::string_view name = "reduce";
  Reduction reduction{};
  Tensor x, y;
};

void check(const ColumnSum& op);
void check(const Reduce& op);

}  // namespace longhand
