#include "core/contract/matmul.h"

#include "core/cpu/cpu_backend.h"
#include "core/cpu/gemm/gemm.h"

namespace longhand::cpu {
namespace {

/// Describes a tensor as a batch of matrices with `rows` rows each. If the tensor is empty, the
/// data of the result is null.
GemmOperand operand(const Tensor& tensor, std::int64_t rows, bool transposed = false) {
  if (!tensor) return {};
  const std::int64_t width = tensor.shape()[-1];
  return {.data = tensor.address(),
          .type = tensor.dtype(),
          .ld = width,
          .batch_stride = rows * width,
          .transposed = transposed};
}

GemmResult result(const Tensor& tensor, std::int64_t rows) {
  if (!tensor) return {};
  const std::int64_t width = tensor.shape()[-1];
  return {
      .data = tensor.address(), .type = tensor.dtype(), .ld = width, .batch_stride = rows * width};
}

}  // namespace

void run(CpuBackend& backend, const Matmul& op) {
  const auto [batch, m, n, k] = extents(op);
  Gemm g{.m = m,
         .n = n,
         .k = k,
         .batch = batch,
         .a = operand(op.a, op.transpose_a ? k : m, op.transpose_a),
         .b = operand(op.b, op.transpose_b ? n : k, op.transpose_b),
         .c = result(op.c, m),
         .alpha = static_cast<float>(op.alpha),
         .beta = static_cast<float>(op.beta),
         .math = backend.math(op.math)};
  if (op.bias) g.epilogue.bias = static_cast<const float*>(op.bias.address());
  g.epilogue.f = op.f;
  g.epilogue.pre = result(op.pre, m);
  g.epilogue.residual = operand(op.residual, m);
  g.epilogue.at = operand(op.at, m);
  gemm(g, backend.isa(), backend.threads(), backend.gemm_workspace());
}

}  // namespace longhand::cpu
