#pragma once

#include <compare>
#include <cstdint>

#include "core/contract/matmul.h"

namespace longhand::cuda {

/// One cuBLASLt call, in our row-major terms:
///   d = epilogue(alpha op(a) op(b) + beta c)
/// d and c [m, n] have one type and may share memory; the call computes `batch` such matrices. This
/// struct describes everything but addresses and factors; heuristics are cached by it.
struct Product {
  enum class Epilogue {
    none,
    bias,            // x + bias_j; bias has d's type
    relu,            // max(x, 0)
    relu_bias,       // max(x + bias_j, 0)
    gelu,            // gelu_tanh(x)
    gelu_bias,       // gelu_tanh(x + bias_j)
    gelu_save,       // as gelu, and stores x, or x + bias_j, in `aux`, of d's type
    gelu_save_bias,  //
    gelu_slope,      // x gelu_tanh'(aux)
  };
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType operands = DType::f32;  // type of a and b
  DType result = DType::f32;    // type of c, d, bias and aux
  bool tf32 = false;            // f32 operands are rounded to 10 bits of fraction
  Epilogue epilogue = Epilogue::none;

  auto operator<=>(const Product&) const = default;
};

/// Addresses and factors of a product.
struct ProductOperands {
  float alpha = 1, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
};

/// The plan of a Matmul: the cuBLASLt product, and whether our own kernel then applies the rest of
/// the epilogue to the plain f32 product.
struct ProductPlan {
  Product product;
  bool rest = false;
  bool residual_as_c = false;  // the product adds the residual: c = residual, beta = 1
};

/// The type as which operands of these types are multiplied.
DType operand_type(const Matmul& op, Math math);
/// Plan that fuses as much of the epilogue as cuBLASLt supports. Its GELU is the tanh approximation
/// in hardware precision, so exact math does not use it.
ProductPlan fused_plan(const Matmul& op, Math math);
/// Plan without a fused epilogue.
ProductPlan plain_plan(const Matmul& op, Math math);

}  // namespace longhand::cuda
