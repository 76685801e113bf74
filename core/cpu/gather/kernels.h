#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// From: type of the table; To: type of the rows.
template <class From, class To>
struct EmbeddingKernels {
  /// y_i = table_(ids_i) for `rows` rows of n entries
  void (*forward)(const From* table, const std::int32_t* ids, To* y, Store how, std::int64_t rows,
                  std::int64_t n);
};

template <class T>
struct GatherKernels {
  /// dtable_(ids_(order_i)) += dy_(order_i), i = 0 .. rows-1; order null: 0, 1, 2, ...
  void (*scatter_rows)(const T* dy, const std::int32_t* ids, const std::int64_t* order,
                       float* dtable, std::int64_t rows, std::int64_t n);
  /// y_ij = x_i,(index_ij) for rows of n entries and k indices
  void (*gather)(const T* x, const std::int32_t* index, T* y, std::int64_t rows, std::int64_t n,
                 std::int64_t k);
  /// sums holds n floats.
  void (*gather_backward)(const std::int32_t* index, const T* dy, T* dx, bool add, float* sums,
                          std::int64_t rows, std::int64_t n, std::int64_t k);
  void (*argmax)(const T* x, std::int32_t* y, std::int64_t rows, std::int64_t n);
};

/// Checks whether all n indices are in [0, bound).
struct IndexKernels {
  bool (*in_range)(const std::int32_t* index, std::int64_t n, std::int64_t bound);
};

}  // namespace longhand::cpu
