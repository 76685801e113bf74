#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

template <class T>
struct SoftmaxKernels {
  /// Rows [begin, end) of n entries. t > 0: causal in matrices of t rows.
  void (*forward)(const T* x, T* y, Store how, std::int64_t begin, std::int64_t end, std::int64_t n,
                  std::int64_t t);
  void (*backward)(const T* y, const T* dy, T* dx, Store how, std::int64_t rows, std::int64_t n);
};

}  // namespace longhand::cpu
