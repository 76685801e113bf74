#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/cpu/store.h"
#include "core/dtype.h"
#include "core/formulas.h"

namespace longhand::cpu {

/// Elementwise kernels, each for a range of entries or rows. T is float or bf16. All arithmetic is
/// in f32.
template <class T>
struct ElementwiseKernels {
  void (*scale)(const T* x, float alpha, T* y, Store how, std::int64_t n);

  /// The kernels of one activation function. The array `formulas` is in the order of the enum
  /// Activation.
  struct Formula {
    void (*activate)(const T* x, T* y, Store how, std::int64_t n);
    void (*activate_backward)(const T* x, const T* dy, T* dx, Store how, std::int64_t n);
    /// Rows of x and dx have 2 * width entries. Rows of y and dy have `width` entries.
    void (*gate)(const T* x, T* y, Store how, std::int64_t rows, std::int64_t width);
    void (*gate_backward)(const T* x, const T* dy, T* dx, Store how, std::int64_t rows,
                          std::int64_t width);
  };
  Formula formulas[Formulas::size];

  /// y = x + bias + residual, where the same bias is added to every row. `bias` or `residual` may
  /// be null.
  void (*add_bias)(const T* x, const float* bias, const T* residual, T* y, Store how,
                   std::int64_t rows, std::int64_t columns);

  void (*from_f32)(const float* x, T* y, Store how, std::int64_t n);
  void (*from_bf16)(const bf16* x, T* y, Store how, std::int64_t n);
  void (*from_i32)(const std::int32_t* x, T* y, Store how, std::int64_t n);
  void (*from_u8)(const std::uint8_t* x, T* y, Store how, std::int64_t n);
  void (*fill)(float value, T* y, Store how, std::int64_t n);
};

}  // namespace longhand::cpu
