#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// From: element type of the table; To: element type of the gathered rows.
template <class From, class To>
struct EmbeddingKernels {
  /// y_i = table_(ids_i) for `rows` rows with n entries each.
  void (*forward)(const From* table, const std::int32_t* ids, To* y, Store how, std::int64_t rows,
                  std::int64_t n);
};

template <class T>
struct GatherKernels {
  /// dtable_(ids_(order_i)) += dy_(order_i) for i = 0 .. rows - 1. If `order` is null, order_i = i.
  void (*scatter_rows)(const T* dy, const std::int32_t* ids, const std::int64_t* order,
                       float* dtable, std::int64_t rows, std::int64_t n);
  /// y_ij = x_i,(index_ij) for rows with n entries and k indices each.
  void (*gather)(const T* x, const std::int32_t* index, T* y, std::int64_t rows, std::int64_t n,
                 std::int64_t k);
  /// The gradient of gather. `sums` is scratch memory for n floats.
  void (*gather_backward)(const std::int32_t* index, const T* dy, T* dx, bool add, float* sums,
                          std::int64_t rows, std::int64_t n, std::int64_t k);
  void (*argmax)(const T* x, std::int32_t* y, std::int64_t rows, std::int64_t n);
};

/// Checks that all n indices are in [0, bound).
struct IndexKernels {
  bool (*in_range)(const std::int32_t* index, std::int64_t n, std::int64_t bound);
};

}  // namespace longhand::cpu
