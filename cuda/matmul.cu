#include "core/contract/matmul.h"

#include "core/formulas.h"
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#include "cuda/launch.h"

namespace longhand::cuda {
namespace {

constexpr int threads = 256;

/// f32 or bf16, seen as f32; empty: none.
struct Floats {
  void* data = nullptr;
  bool half = false;

  Floats() = default;
  explicit Floats(const Tensor& x) : data(x.address()), half(x && x.dtype() == DType::bf16) {}

  __device__ __forceinline__ float at(std::int64_t i) const {
    return half ? to_float(static_cast<const bf16*>(data)[i]) : static_cast<const float*>(data)[i];
  }
  __device__ __forceinline__ void put(std::int64_t i, float value) const {
    if (half) {
      static_cast<bf16*>(data)[i] = from_float<bf16>(value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }
};

/// What follows alpha op(a) op(b), as in the contract.
struct Rest {
  const float* product;  // [m, n]
  const float* bias;
  Floats pre, residual, at, c;
  float beta;
};

/// z = product + bias;  c = f(z) + residual + beta c, z stored in pre
template <class F>
__global__ void finish_forward(Rest rest, std::int64_t size, std::int64_t columns) {
  for (std::int64_t i = thread_in_grid(); i < size; i += threads_in_grid()) {
    float z = rest.product[i];
    if (rest.bias) z += rest.bias[i % columns];
    if (rest.pre.data) rest.pre.put(i, z);
    float y = F::value(z);
    if (rest.residual.data) y += rest.residual.at(i);
    if (rest.beta != 0) y += rest.beta * rest.c.at(i);
    rest.c.put(i, y);
  }
}

/// c = product * f'(at) + beta c
template <class F>
__global__ void finish_backward(Rest rest, std::int64_t size) {
  for (std::int64_t i = thread_in_grid(); i < size; i += threads_in_grid()) {
    float y = rest.product[i] * F::derivative(rest.at.at(i));
    if (rest.beta != 0) y += rest.beta * rest.c.at(i);
    rest.c.put(i, y);
  }
}

}  // namespace

void CudaBackend::run(const Matmul& op) {
  if (op.c.size() == 0) return;
  const Math math = this->math(op.math);
  const DType type = operand_type(op, math);
  const auto as_operand = [&](const Tensor& x) {
    if (x.dtype() == type) return x;
    Tensor converted(*this, x.shape(), type);
    run(Copy{.x = x, .y = converted});
    return converted;
  };

  ProductPlan plan = fused_plan(op, math);
  const bool empty = plan.product.k == 0;
  const Tensor a = empty ? Tensor() : as_operand(op.a);
  const Tensor b = empty ? Tensor() : as_operand(op.b);
  ProductOperands operands{
      .alpha = static_cast<float>(op.alpha), .a = a.address(), .b = b.address()};
  if (!plan.rest) {
    Tensor bias = op.bias;
    if (bias && bias.dtype() != op.c.dtype()) {
      bias = Tensor(*this, op.bias.shape(), op.c.dtype());
      run(Copy{.x = op.bias, .y = bias});
    }
    operands.beta = plan.residual_as_c ? 1.0f : static_cast<float>(op.beta);
    operands.c = plan.residual_as_c ? op.residual.address() : op.c.address();
    operands.d = op.c.address();
    operands.bias = bias.address();
    operands.aux = op.at ? op.at.address() : op.pre.address();
    if (products_.run(plan.product, operands)) return;
    plan = plain_plan(op, math);
  }

  Tensor product = op.c;  // finished in place where it can be
  if (op.c.dtype() != DType::f32 || op.beta != 0) product = Tensor(*this, op.c.shape(), DType::f32);
  if (empty) {
    stream_.zero(product.address(), product.bytes());
  } else {
    operands.beta = 0;
    operands.c = operands.d = product.address();
    operands.bias = nullptr;
    operands.aux = nullptr;
    LONGHAND_CHECK(products_.run(plan.product, operands), "cuda: cuBLASLt does not multiply [",
                   plan.product.m, ", ", plan.product.k, "] by [", plan.product.k, ", ",
                   plan.product.n, "]");
  }
  const Rest rest{.product = product.data<float>(),
                  .bias = op.bias ? op.bias.data<float>() : nullptr,
                  .pre = Floats(op.pre),
                  .residual = Floats(op.residual),
                  .at = Floats(op.at),
                  .c = Floats(op.c),
                  .beta = static_cast<float>(op.beta)};
  const std::int64_t size = op.c.size();
  with_formula(op.f.value_or(Activation::identity), [&](auto f) {
    using F = decltype(f);
    if (op.at) {
      launch(stream_, blocks_for(size, threads), threads, 0, &finish_backward<F>, rest, size);
    } else {
      launch(stream_, blocks_for(size, threads), threads, 0, &finish_forward<F>, rest, size,
             op.c.columns());
    }
  });
}

}  // namespace longhand::cuda
