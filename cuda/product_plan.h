#pragma once

#include <compare>
#include <cstdint>

#include "core/contract/matmul.h"

namespace longhand::cuda {

/// What one call of cuBLASLt computes, in our row-major terms:
///   d = epilogue(alpha op(a) op(b) + beta c)
/// d and c [m, n] of one type and maybe the same memory, for each of `batch` matrices side by side.
/// Everything of a call but addresses and factors: heuristics are cached by it.
struct Product {
  enum class Epilogue {
    none,
    bias,            // x + bias_j, bias of d's type
    relu,            // max(x, 0)
    relu_bias,       // max(x + bias_j, 0)
    gelu,            // gelu_tanh(x)
    gelu_bias,       // gelu_tanh(x + bias_j)
    gelu_save,       // the same, with x, or x + bias_j, stored in `aux`, of d's type
    gelu_save_bias,  //
    gelu_slope,      // x gelu_tanh'(aux)
  };
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  DType operands = DType::f32;  // of a and b
  DType result = DType::f32;    // of c, d, bias and aux
  bool tf32 = false;            // f32 operands are rounded to 10 bits of fraction
  Epilogue epilogue = Epilogue::none;

  auto operator<=>(const Product&) const = default;
};

struct ProductOperands {
  float alpha = 1, beta = 0;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
};

/// How a Matmul is done: the product, and whether our own kernel does the rest of the epilogue
/// after it, from the plain product in f32.
struct ProductPlan {
  Product product;
  bool rest = false;
  bool residual_as_c = false;  // the product adds it: c = residual, beta = 1
};

/// What operands of these types are multiplied as.
DType operand_type(const Matmul& op, Math math);
/// With as much of the epilogue as cuBLASLt can have. Its GELU is the approximation by tanh, in
/// hardware's precision: not for exact math.
ProductPlan fused_plan(const Matmul& op, Math math);
/// With none of it.
ProductPlan plain_plan(const Matmul& op, Math math);

}  // namespace longhand::cuda
