#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// From is the element type of the embedding table, To is the element type of the result y.
template <class From, class To>
struct EmbeddingKernels {
  /// Copies row ids[i] of the table to row i of y, for `rows` rows with n entries each.
  void (*forward)(const From* table, const std::int32_t* ids, To* y, Store how, std::int64_t rows,
                  std::int64_t n);
};

template <class T>
struct GatherKernels {
  /// Adds row r of dy to row ids[r] of dtable, for r = order[0], ..., order[rows - 1]. If `order`
  /// is null, r = 0, ..., rows - 1.
  void (*scatter_rows)(const T* dy, const std::int32_t* ids, const std::int64_t* order,
                       float* dtable, std::int64_t rows, std::int64_t n);
  /// Copies entry index_ij of row i of x to y_ij. Rows of x have n entries. Rows of `index` and y
  /// have k entries.
  void (*gather)(const T* x, const std::int32_t* index, T* y, std::int64_t rows, std::int64_t n,
                 std::int64_t k);
  /// Computes dx, the gradient of gather(), or adds it to dx if `add` is true. `sums` is scratch
  /// memory for n floats.
  void (*gather_backward)(const std::int32_t* index, const T* dy, T* dx, bool add, float* sums,
                          std::int64_t rows, std::int64_t n, std::int64_t k);
  void (*argmax)(const T* x, std::int32_t* y, std::int64_t rows, std::int64_t n);
};

/// in_range() returns true if all n indices are in [0, bound).
struct IndexKernels {
  bool (*in_range)(const std::int32_t* index, std::int64_t n, std::int64_t bound);
};

}  // namespace longhand::cpu
