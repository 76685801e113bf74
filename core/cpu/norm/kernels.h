#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// Rows of n entries; T is float or bf16. See core/contract/norm.h for the formulas.
template <class T>
struct NormKernels {
  /// `mean` is null for RMS norm, which subtracts no mean. Entry j is multiplied by (offset +
  /// gain_j). `bias` may be null.
  struct Forward {
    const T* x;
    const float *gain, *bias;
    float offset, epsilon;
    T* y;
    float *mean, *rstd;
    Store how;
  };
  void (*forward)(const Forward& rows, std::int64_t begin, std::int64_t end, std::int64_t n);

  /// dx may be null. The sums over the rows of this call are added to dgain and dbias, each of
  /// which may be null.
  struct Backward {
    const T *x, *dy;
    const float *gain, *mean, *rstd;
    float offset;
    T* dx;
    Store how;
  };
  void (*backward)(const Backward& rows, std::int64_t begin, std::int64_t end, std::int64_t n,
                   float* dgain, float* dbias);
};

}  // namespace longhand::cpu
