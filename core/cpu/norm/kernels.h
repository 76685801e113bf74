#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// Kernels of LayerNorm and RmsNorm for rows of n entries. T is float or bf16. See
/// core/contract/norm.h for the formulas.
template <class T>
struct NormKernels {
  /// The arguments of the forward pass. `mean` is null for RmsNorm, which subtracts no mean. Entry
  /// j of a normalized row is multiplied by offset + gain_j. `bias` may be null.
  struct Forward {
    const T* x;
    const float *gain, *bias;
    float offset, epsilon;
    T* y;
    float *mean, *rstd;
    Store how;
  };
  void (*forward)(const Forward& rows, std::int64_t begin, std::int64_t end, std::int64_t n);

  /// The arguments of the backward pass. dx may be null. backward() adds the gradients of gain and
  /// bias, summed over the rows [begin, end), to dgain and dbias. dgain or dbias may be null.
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
