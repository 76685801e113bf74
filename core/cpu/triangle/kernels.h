#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// Number of right-hand sides that are solved together. They are the columns of one panel.
inline constexpr std::int64_t panel = 64;

template <class T>
struct TriangleKernels {
  /// Writes alpha times a row of n entries. Entries outside [begin, end) are set to 0.
  void (*row)(const T* x, float alpha, T* y, Store how, std::int64_t begin, std::int64_t end,
              std::int64_t n);

  /// op(a)_ij is a[i * row_step + j * column_step]. b and y have `columns` columns, which are at
  /// most a panel. Their rows are m entries apart. `forward` is true if op(a) is lower triangular.
  /// `scratch` has room for n * panel floats.
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
