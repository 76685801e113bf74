#pragma once

#include <compare>
#include <cstdint>

#include "core/contract/matmul.h"

namespace longhand::cuda {

/// One cuBLASLt call, described for row-major matrices:
///   d = epilogue(x), where x = alpha op(a) op(b) + beta c.
/// d and c [m, n] have the same type and may share memory. The call computes `batch` such matrices.
/// ProductOperands contains the addresses of the matrices and the factors alpha and beta. The
/// algorithm that cuBLASLt's heuristics choose for a product is cached. This struct is part of the
/// cache's key.
struct Product {
  enum class Epilogue {
    none,
    bias,            // x + bias_j in column j
    relu,            // max(x, 0)
    relu_bias,       // max(x + bias_j, 0) in column j
    gelu,            // gelu_tanh(x)
    gelu_bias,       // gelu_tanh(x + bias_j) in column j
    gelu_save,       // gelu_tanh(x); also stores x in the matrix aux
    gelu_save_bias,  // gelu_tanh(x + bias_j); also stores x + bias_j in the matrix aux
    gelu_slope,      // x gelu_tanh'(aux), where the matrix aux is an input
  };
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType operands = DType::f32;  // type of the factors a and b
  DType result = DType::f32;    // type of the result d, and of c, bias and aux
  bool tf32 = false;            // f32 operands are rounded to 10 bits of fraction
  Epilogue epilogue = Epilogue::none;

  auto operator<=>(const Product&) const = default;
};

/// The addresses of a product's matrices, and the factors alpha and beta.
struct ProductOperands {
  float alpha = 1, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
};

/// How a Matmul is computed. If `rest` is false, one cuBLASLt call computes the product and its
/// epilogue. Otherwise cuBLASLt computes the product in f32, and a kernel of our own applies the
/// epilogue.
struct ProductPlan {
  Product product;
  bool rest = false;
  // true if cuBLASLt adds the residual: it receives the residual as its operand c, with beta = 1
  bool residual_as_c = false;
};

/// The type to which both operands are converted before they are multiplied.
DType operand_type(const Matmul& op, Math math);
/// Plan with a fused epilogue, or plain_plan() if cuBLASLt does not support this epilogue. A fused
/// GELU is not used with Math::exact, because cuBLASLt uses the hardware's approximation of tanh.
ProductPlan fused_plan(const Matmul& op, Math math);
/// Plan without a fused epilogue: a kernel of our own applies the epilogue to the f32 product.
ProductPlan plain_plan(const Matmul& op, Math math);

}  // namespace longhand::cuda
