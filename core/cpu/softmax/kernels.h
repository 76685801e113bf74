#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

template <class T>
struct SoftmaxKernels {
  /// Computes y = softmax(x) for the rows [begin, end), which have n entries each. If t > 0, every
  /// t consecutive rows are a matrix with a causal mask. If t is 0, there is no mask.
  void (*forward)(const T* x, T* y, Store how, std::int64_t begin, std::int64_t end, std::int64_t n,
                  std::int64_t t);
  void (*backward)(const T* y, const T* dy, T* dx, Store how, std::int64_t rows, std::int64_t n);
};

}  // namespace longhand::cpu
