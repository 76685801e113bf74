#pragma once

#include <cstdint>

#include "core/contract/reduce.h"
#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

template <class T>
struct ReduceKernels {
  /// y_j += the sum over all rows i of x_ij, for j in [0, columns). Consecutive rows are `stride`
  /// entries apart.
  void (*add_rows)(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t columns,
                   float* y);
  /// Returns the given reduction of n entries (see Reduce in core/contract/reduce.h). A maximum or
  /// minimum is NaN if any entry is NaN.
  float (*reduce)(Reduction reduction, const T* x, std::int64_t n);
  /// y_j = alpha x_j for n entries. If how.add is true, adds alpha x_j to y_j instead.
  void (*put)(const float* x, float alpha, float* y, Store how, std::int64_t n);
};

}  // namespace longhand::cpu
