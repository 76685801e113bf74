#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// Maximum number of right-hand sides of a triangular system that are solved together. They are
/// adjacent columns of a matrix.
inline constexpr std::int64_t panel = 64;

template <class T>
struct TriangleKernels {
  /// Stores alpha x in y for a row x of n entries. The entries of y outside [begin, end) become 0.
  void (*row)(const T* x, float alpha, T* y, Store how, std::int64_t begin, std::int64_t end,
              std::int64_t n);

  /// The triangular system op(a) y = b, where op(a) is a or its transpose:
  ///   op(a)_ij = a[i * row_step + j * column_step];
  /// b and y have at most `panel` columns, and their rows are m entries apart. `forward` is true if
  /// op(a) is lower triangular, and `unit` is true if its diagonal consists of ones. `scratch` has
  /// room for n * panel floats.
  struct Solve {
    const T* a;
    std::int64_t row_step, column_step, n;
    bool forward, unit;
    const T* b;
    T* y;
    std::int64_t m, columns;
    float* scratch;
  };
  void (*solve)(const Solve& system);
};

}  // namespace longhand::cpu
