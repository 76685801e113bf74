#pragma once

#include <compare>
#include <cstdint>

#include "core/contract/matmul.h"

namespace longhand::cuda {

/// One cuBLASLt call, described for row-major matrices:
///   d = epilogue(x), where x = alpha op(a) op(b) + beta c
/// d and c [m, n] have the same type and may share memory. The call computes `batch` such matrices.
/// Addresses and factors are in ProductOperands. The struct is also the key under which the
/// algorithm that cuBLASLt's heuristics choose is cached.
struct Product {
  enum class Epilogue {
    none,
    bias,            // x + bias_j; bias has d's type
    relu,            // max(x, 0)
    relu_bias,       // max(x + bias_j, 0)
    gelu,            // gelu_tanh(x)
    gelu_bias,       // gelu_tanh(x + bias_j)
    gelu_save,       // gelu_tanh(x); stores x in aux, which has d's type
    gelu_save_bias,  // gelu_tanh(x + bias_j); stores x + bias_j in aux
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

/// The plan of a Matmul: a cuBLASLt product. If `rest` is true, the product has no epilogue and an
/// f32 result, to which our own kernel applies the epilogue.
struct ProductPlan {
  Product product;
  bool rest = false;
  bool residual_as_c = false;  // the product adds the residual: c = residual, beta = 1
};

/// The type to which both operands are converted before they are multiplied.
DType operand_type(const Matmul& op, Math math);
/// Plan with a fused epilogue, or the plain plan if cuBLASLt does not support this epilogue. The
/// GELU of cuBLASLt is the tanh approximation in hardware precision, so exact math does not use it.
ProductPlan fused_plan(const Matmul& op, Math math);
/// Plan without a fused epilogue.
ProductPlan plain_plan(const Matmul& op, Math math);

}  // namespace longhand::cuda
