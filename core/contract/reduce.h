#pragma once

#include <string_view>

#include "core/contract/target.h"
#include "core/tensor.h"

namespace longhand {

/// y_j = alpha sum_i x_ij. y [columns] of the master type: the gradient of a bias.
struct ColumnSum {
  static constexpr std::string_view name = "column_sum";
  Tensor x;
  double alpha = 1;
  Target y;
};

enum class Reduction { sum, largest, smallest, square_sum, nonfinite };
std::string_view name_of(Reduction reduction);

/// y_i = reduction over j of x_ij; y [rows] of the master type. nonfinite counts infinities and
/// NaNs. A row without entries gives 0, -infinity, infinity, 0, 0. A NaN in a row makes its sum,
/// maximum and minimum NaN.
struct Reduce {
  static constexpr std::string_view name = "reduce";
  Reduction reduction{};
  Tensor x, y;
};

void check(const ColumnSum& op);
void check(const Reduce& op);

}  // namespace longhand
