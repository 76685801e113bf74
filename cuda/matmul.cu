#include "core/contract/matmul.h"

#include "core/contract/elementwise.h"
#include "core/formulas.h"
#include "cuda/cuda_backend.h"
#include "cuda/floats.h"
#include "cuda/launch.h"

namespace longhand::cuda {
namespace {

/// An array of f32 or bf16 values, which kernels load and store as f32. `data` is null if the
/// tensor is empty.
struct Mixed {
  void* data = nullptr;
  bool half = false;

  Mixed() = default;
  explicit Mixed(const Tensor& x) : data(x.address()), half(x && x.dtype() == DType::bf16) {}

  template <int width>
  __device__ __forceinline__ Floats<width> at(std::int64_t i) const {
    return half ? load<width>(static_cast<const bf16*>(data) + i)
                : load<width>(static_cast<const float*>(data) + i);
  }
  template <int width>
  __device__ __forceinline__ void put(std::int64_t i, const Floats<width>& values) const {
    if (half) {
      store(static_cast<bf16*>(data) + i, values);
    } else {
      store(static_cast<float*>(data) + i, values);
    }
  }
};

/// Operands of a Matmul's epilogue (core/contract/matmul.h). The kernels below apply the epilogue
/// to the product alpha op(a) op(b).
struct Rest {
  const float* product;  // alpha op(a) op(b), [m, n]
  const float* bias;
  Mixed pre, residual, at, c;
  float beta;
};

/// Applies the forward epilogue, where f is the activation function F:
///   z = product + bias;  c = f(z) + residual + beta c.
/// Stores z in `pre`. bias, residual and `pre` may be empty.
template <class F, int width>
__global__ void __launch_bounds__(block_threads)
    finish_forward(Rest rest, std::int64_t size, std::int64_t columns) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> z = load<width>(rest.product + i), y;
    if (rest.bias) {
      const auto bias = load<width>(rest.bias + row_column(i, columns).column);
#pragma unroll
      for (int k = 0; k < width; ++k) z.at[k] += bias.at[k];
    }
    if (rest.pre.data) rest.pre.put(i, z);
#pragma unroll
    for (int k = 0; k < width; ++k) y.at[k] = F::value(z.at[k]);
    if (rest.residual.data) {
      const auto residual = rest.residual.at<width>(i);
#pragma unroll
      for (int k = 0; k < width; ++k) y.at[k] += residual.at[k];
    }
    if (rest.beta != 0) {
      const auto old = rest.c.at<width>(i);
#pragma unroll
      for (int k = 0; k < width; ++k) y.at[k] += rest.beta * old.at[k];
    }
    rest.c.put(i, y);
  }
}

/// Applies the backward epilogue c = product * f'(at) + beta c. Here f is the activation function
/// F, `at` is the input of f in the forward pass, and * multiplies entry by entry.
template <class F, int width>
__global__ void __launch_bounds__(block_threads) finish_backward(Rest rest, std::int64_t size) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> y = load<width>(rest.product + i);
    const auto at = rest.at.at<width>(i);
#pragma unroll
    for (int k = 0; k < width; ++k) y.at[k] *= F::derivative(at.at[k]);
    if (rest.beta != 0) {
      const auto old = rest.c.at<width>(i);
#pragma unroll
      for (int k = 0; k < width; ++k) y.at[k] += rest.beta * old.at[k];
    }
    rest.c.put(i, y);
  }
}

/// Computes the product and its epilogue with cuBLASLt. Returns false if cuBLASLt does not support
/// this product with this epilogue.
bool run_fused(CudaBackend& backend, const Matmul& op, const ProductPlan& plan,
               ProductOperands operands) {
  Tensor bias = op.bias;
  if (bias && bias.dtype() != op.c.dtype()) {
    bias = Tensor(backend, op.bias.shape(), op.c.dtype());
    backend.run(Copy{.x = op.bias, .y = bias});
  }
  operands.beta = plan.residual_as_c ? 1.0f : static_cast<float>(op.beta);
  operands.c = plan.residual_as_c ? op.residual.address() : op.c.address();
  operands.d = op.c.address();
  operands.bias = bias.address();
  operands.aux = op.at ? op.at.address() : op.pre.address();
  return backend.products().run(plan.product, operands);
}

/// Applies the epilogue of `op` to the product with one of our own kernels.
void finish(CudaBackend& backend, const Matmul& op, const Tensor& product) {
  const Rest rest{.product = product.data<float>(),
                  .bias = op.bias ? op.bias.data<float>() : nullptr,
                  .pre = Mixed(op.pre),
                  .residual = Mixed(op.residual),
                  .at = Mixed(op.at),
                  .c = Mixed(op.c),
                  .beta = static_cast<float>(op.beta)};
  const std::int64_t size = op.c.size(), columns = op.c.columns();
  const auto finish_by = [&]<int width>(std::integral_constant<int, width>) {
    const std::int64_t blocks = backend.blocks_for(size / width, block_threads);
    with_formula(op.f.value_or(Activation::identity), [&](auto f) {
      using F = decltype(f);
      if (op.at) {
        launch(backend.stream(), blocks, block_threads, 0, &finish_backward<F, width>, rest, size);
      } else {
        launch(backend.stream(), blocks, block_threads, 0, &finish_forward<F, width>, rest, size,
               columns);
      }
    });
  };
  constexpr int width = 4;
  const bool fits = columns % width == 0 &&
                    on_16_bytes(rest.product, rest.bias, static_cast<char*>(rest.pre.data),
                                static_cast<char*>(rest.residual.data),
                                static_cast<char*>(rest.at.data), static_cast<char*>(rest.c.data));
  if (fits) {
    finish_by(std::integral_constant<int, width>{});
  } else {
    finish_by(std::integral_constant<int, 1>{});
  }
}

}  // namespace

void run(CudaBackend& backend, const Matmul& op) {
  if (op.c.size() == 0) return;
  const Math math = backend.math(op.math);
  const DType type = operand_type(op, math);
  const auto as_operand = [&](const Tensor& x) {
    if (x.dtype() == type) return x;
    Tensor converted(backend, x.shape(), type);
    backend.run(Copy{.x = x, .y = converted});
    return converted;
  };

  ProductPlan plan = fused_plan(op, math);
  const bool empty = plan.product.k == 0;
  const Tensor a = empty ? Tensor() : as_operand(op.a);
  const Tensor b = empty ? Tensor() : as_operand(op.b);
  ProductOperands operands{
      .alpha = static_cast<float>(op.alpha), .a = a.address(), .b = b.address()};
  if (!plan.rest) {
    if (run_fused(backend, op, plan, operands)) return;
    plan = plain_plan(op, math);
  }

  // If possible, the product is stored in c, and the epilogue works in place.
  Tensor product = op.c;
  if (op.c.dtype() != DType::f32 || op.beta != 0)
    product = Tensor(backend, op.c.shape(), DType::f32);
  if (empty) {
    backend.stream().zero(product.address(), product.bytes());
  } else {
    operands.c = operands.d = product.address();
    LONGHAND_CHECK(backend.products().run(plan.product, operands),
                   "cuda: cuBLASLt cannot multiply [", plan.product.m, ", ", plan.product.k,
                   "] by [", plan.product.k, ", ", plan.product.n, "]");
  }
  finish(backend, op, product);
}

}  // namespace longhand::cuda
