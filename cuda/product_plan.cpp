#include "cuda/product_plan.h"

namespace longhand::cuda {
namespace {

using Epilogue = Product::Epilogue;

Product bare(const Matmul& op, Math math) {
  const MatmulExtents sizes = extents(op);
  const DType operands = operand_type(op, math);
  return {.batch = sizes.batch,
          .m = sizes.m,
          .n = sizes.n,
          .k = sizes.k,
          .transpose_a = op.transpose_a,
          .transpose_b = op.transpose_b,
          .operands = operands,
          .result = op.c.dtype(),
          .tf32 = operands == DType::f32 && math == Math::fast};
}

bool on_16_bytes(const Tensor& x) {
  return reinterpret_cast<std::uintptr_t>(x.address()) % 16 == 0;
}

/// True if the bias will have the alignment that fused epilogues require. `type` is the type of the
/// result c. A bias of another type is converted for the epilogue, and the converted copy is always
/// aligned.
bool fit_for_epilogue(const Tensor& bias, DType type) {
  return !bias || bias.dtype() != type || on_16_bytes(bias);
}

/// Returns cuBLASLt's epilogue for a Matmul with an activation, or no value if cuBLASLt has no such
/// epilogue. `aux` is the saved input of the activation. cuBLASLt requires `aux` and its rows to be
/// aligned to 16 bytes.
std::optional<Epilogue> activated(const Matmul& op, Math math) {
  if (op.beta != 0 || op.residual) return std::nullopt;
  const bool bias = static_cast<bool>(op.bias);
  if (*op.f == Activation::relu && !op.pre && !op.at) {
    return bias ? Epilogue::relu_bias : Epilogue::relu;
  }
  if (*op.f != Activation::gelu_tanh || math == Math::exact) return std::nullopt;
  if (!op.pre && !op.at) return bias ? Epilogue::gelu_bias : Epilogue::gelu;
  const Tensor& aux = op.at ? op.at : op.pre;
  if (aux.dtype() != op.c.dtype() || aux.columns() % 8 != 0 || !on_16_bytes(aux)) {
    return std::nullopt;
  }
  if (op.at) return Epilogue::gelu_slope;
  return bias ? Epilogue::gelu_save_bias : Epilogue::gelu_save;
}

}  // namespace

DType operand_type(const Matmul& op, Math math) {
  const bool both = op.a.dtype() == DType::bf16 && op.b.dtype() == DType::bf16;
  return both || math == Math::bf16 ? DType::bf16 : DType::f32;
}

ProductPlan plain_plan(const Matmul& op, Math math) {
  ProductPlan plan{.product = bare(op, math), .rest = true};
  plan.product.result = DType::f32;
  return plan;
}

ProductPlan fused_plan(const Matmul& op, Math math) {
  ProductPlan plan{.product = bare(op, math)};
  const ProductPlan plain = plain_plan(op, math);
  if (plan.product.k == 0) return plain;
  // With f32 operands cuBLASLt only produces f32 results.
  if (plan.product.operands == DType::f32 && op.c.dtype() != DType::f32) return plain;
  if (!fit_for_epilogue(op.bias, op.c.dtype())) return plain;
  if (op.f) {
    const auto epilogue = activated(op, math);
    if (!epilogue) return plain;
    plan.product.epilogue = *epilogue;
    return plan;
  }
  if (op.pre) return plain;
  if (op.residual) {
    if (op.beta != 0 || op.residual.dtype() != op.c.dtype()) return plain;
    plan.residual_as_c = true;
  }
  if (op.bias) plan.product.epilogue = Epilogue::bias;
  return plan;
}

}  // namespace longhand::cuda
