#include "core/contract/elementwise.h"

#include <cmath>

#include "core/formulas.h"
#include "cuda/cuda_backend.h"
#include "cuda/floats.h"
#include "cuda/launch.h"
#include "cuda/visit.h"

namespace longhand::cuda {
namespace {

// Functors that compute one element, one functor for each kind of operation.
struct Scaled {
  float alpha;
  __device__ float operator()(float x) const { return alpha * x; }
};
template <class F>
struct Activated {
  __device__ float operator()(float x) const { return F::value(x); }
};
template <class F>
struct Sloped {
  __device__ float operator()(float x, float dy) const { return dy * F::derivative(x); }
};

/// y_i = f(a_i)
template <int width, class T, class F>
__global__ void __launch_bounds__(block_threads)
    map_one(const T* a, Out<T> y, std::int64_t size, F f) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> x = load<width>(a + i);
#pragma unroll
    for (int k = 0; k < width; ++k) x.at[k] = f(x.at[k]);
    y.put(i, x);
  }
}

/// y_i = f(a_i, b_i)
template <int width, class T, class F>
__global__ void __launch_bounds__(block_threads)
    map_two(const T* a, const T* b, Out<T> y, std::int64_t size, F f) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> u = load<width>(a + i);
    const Floats<width> v = load<width>(b + i);
#pragma unroll
    for (int k = 0; k < width; ++k) u.at[k] = f(u.at[k], v.at[k]);
    y.put(i, u);
  }
}

template <class T>
__global__ void __launch_bounds__(block_threads) fill(T* y, std::int64_t size, T value) {
  for (std::int64_t i = thread_in_grid(); i < size; i += threads_in_grid()) y[i] = value;
}

template <int width, class From, class To>
__global__ void __launch_bounds__(block_threads) convert(const From* x, To* y, std::int64_t size) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    store(y + i, load<width>(x + i));
  }
}

/// y_ij = f(x_ij) x_i,(w+j), where x has 2 w columns and y has w columns.
template <class F, int width, class T>
__global__ void __launch_bounds__(block_threads)
    gate(const T* x, T* y, std::int64_t size, std::int64_t w) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    const RowColumn at = row_column(i, w);
    const T* const gated = x + at.row * 2 * w + at.column;
    Floats<width> u = load<width>(gated);
    const Floats<width> v = load<width>(gated + w);
#pragma unroll
    for (int k = 0; k < width; ++k) u.at[k] = F::value(u.at[k]) * v.at[k];
    store(y + i, u);
  }
}

/// The gradient of y_ij = f(x_ij) x_i,(w+j), where x has 2 w columns and y has w columns:
///   dx_ij = dy_ij f'(x_ij) x_i,(w+j);  dx_i,(w+j) = dy_ij f(x_ij).
/// dx may be the memory of x, because a thread reads x_ij and x_i,(w+j) before it writes there.
template <class F, int width, class T>
__global__ void __launch_bounds__(block_threads)
    gate_backward(const T* x, const T* dy, Out<T> dx, std::int64_t size, std::int64_t w) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    const RowColumn at = row_column(i, w);
    const std::int64_t first = at.row * 2 * w + at.column;
    const Floats<width> u = load<width>(x + first), v = load<width>(x + first + w);
    Floats<width> du = load<width>(dy + i), dv = du;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      du.at[k] *= F::derivative(u.at[k]) * v.at[k];
      dv.at[k] *= F::value(u.at[k]);
    }
    dx.put(first, du);
    dx.put(first + w, dv);
  }
}

/// y_ij = x_ij + bias_j + residual_ij
template <int width, class T>
__global__ void __launch_bounds__(block_threads)
    add_bias(const T* x, const float* bias, const T* residual, T* y, std::int64_t size,
             std::int64_t columns) {
  const std::int64_t step = threads_in_grid() * width;
  for (std::int64_t i = thread_in_grid() * width; i < size; i += step) {
    Floats<width> sum = load<width>(x + i);
    if (bias) {
      const float* const b = bias + row_column(i, columns).column;
#pragma unroll
      for (int k = 0; k < width; ++k) sum.at[k] += b[k];
    }
    if (residual) {
      const Floats<width> r = load<width>(residual + i);
#pragma unroll
      for (int k = 0; k < width; ++k) sum.at[k] += r.at[k];
    }
    store(y + i, sum);
  }
}

}  // namespace

void run(CudaBackend& backend, const Fill& op) {
  if (op.value == 0 && !std::signbit(op.value)) {
    backend.stream().zero(op.y.address(), op.y.bytes());
    return;
  }
  const auto with_type = [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, double>) {  // require_dtype() rules out f64
      T value;
      if constexpr (std::is_same_v<T, bf16>) {
        value = bf16(static_cast<float>(op.value));
      } else {
        value = static_cast<T>(op.value);
      }
      const std::int64_t size = op.y.size();
      launch(backend.stream(), backend.blocks_for(size, block_threads), block_threads, 0, &fill<T>,
             op.y.data<T>(), size, value);
    }
  };
  visit_dtype(op.y.dtype(), with_type);
}

void run(CudaBackend& backend, const Copy& op) {
  if (op.x.dtype() == op.y.dtype()) {
    if (!op.x.same_memory(op.y))
      backend.stream().copy(op.y.address(), op.x.address(), op.x.bytes());
    return;
  }
  const std::int64_t size = op.x.size();
  const auto with_types = [&]<class From, class To>(From, To) {
    const From* const x = op.x.data<From>();
    To* const y = op.y.data<To>();
    constexpr int width = 4;
    if (size % width == 0 && on_16_bytes(x, y)) {
      launch(backend.stream(), backend.blocks_for(size / width, block_threads), block_threads, 0,
             &convert<width, From, To>, x, y, size);
    } else {
      launch(backend.stream(), backend.blocks_for(size, block_threads), block_threads, 0,
             &convert<1, From, To>, x, y, size);
    }
  };
  visit_dtype(op.x.dtype(), [&]<class From>(From) {
    if constexpr (!std::is_same_v<From, double>) {
      visit_activation(op.y.dtype(), [&]<class To>(To) {
        if constexpr (!std::is_same_v<From, To>) with_types(From{}, To{});
      });
    }
  });
}

namespace {

/// Enqueues the kernel for y_i = f(a_i), or for y_i = f(a_i, b_i) if f has two parameters.
template <class F>
void map(CudaBackend& backend, F f, const Target& y, const Tensor& a, const Tensor& b = {}) {
  const std::int64_t size = a.size();
  visit_activation(a.dtype(), [&]<class T>(T) {
    const T *const u = a.data<T>(), *const v = data_or_null<T>(b);
    const Out<T> to = out<T>(y);
    const bool fits = size % full_width<T> == 0 && on_16_bytes(u, v, to.y);
    with_width<T>(fits, [&]<int width>(std::integral_constant<int, width>) {
      const std::int64_t blocks = backend.blocks_for(size / width, block_threads);
      if constexpr (std::is_invocable_v<F, float, float>) {
        launch(backend.stream(), blocks, block_threads, 0, &map_two<width, T, F>, u, v, to, size,
               f);
      } else {
        launch(backend.stream(), blocks, block_threads, 0, &map_one<width, T, F>, u, to, size, f);
      }
    });
  });
}

}  // namespace

void run(CudaBackend& backend, const Scale& op) {
  map(backend, Scaled{static_cast<float>(op.alpha)}, op.y, op.x);
}

void run(CudaBackend& backend, const Activate& op) {
  with_formula(op.f, [&](auto f) { map(backend, Activated<decltype(f)>{}, op.y, op.x); });
}

void run(CudaBackend& backend, const ActivateBackward& op) {
  with_formula(op.f, [&](auto f) { map(backend, Sloped<decltype(f)>{}, op.dx, op.x, op.dy); });
}

void run(CudaBackend& backend, const Gate& op) {
  const std::int64_t size = op.y.size(), w = op.y.columns();
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T* const x = op.x.data<T>();
    T* const y = op.y.data<T>();
    const bool fits = w % full_width<T> == 0 && on_16_bytes(x, y);
    with_width<T>(fits, [&]<int width>(std::integral_constant<int, width>) {
      with_formula(op.f, [&](auto f) {
        launch(backend.stream(), backend.blocks_for(size / width, block_threads), block_threads, 0,
               &gate<decltype(f), width, T>, x, y, size, w);
      });
    });
  });
}

void run(CudaBackend& backend, const GateBackward& op) {
  const std::int64_t size = op.dy.size(), w = op.dy.columns();
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T *const x = op.x.data<T>(), *const dy = op.dy.data<T>();
    const Out<T> dx = out<T>(op.dx);
    const bool fits = w % full_width<T> == 0 && on_16_bytes(x, dy, dx.y);
    with_width<T>(fits, [&]<int width>(std::integral_constant<int, width>) {
      with_formula(op.f, [&](auto f) {
        launch(backend.stream(), backend.blocks_for(size / width, block_threads), block_threads, 0,
               &gate_backward<decltype(f), width, T>, x, dy, dx, size, w);
      });
    });
  });
}

void run(CudaBackend& backend, const AddBias& op) {
  const std::int64_t size = op.x.size(), columns = op.x.columns();
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const T *const x = op.x.data<T>(), *const residual = data_or_null<T>(op.residual);
    T* const y = op.y.data<T>();
    const float* const bias = data_or_null<float>(op.bias);
    const bool fits = columns % full_width<T> == 0 && on_16_bytes(x, residual, y);
    with_width<T>(fits, [&]<int width>(std::integral_constant<int, width>) {
      launch(backend.stream(), backend.blocks_for(size / width, block_threads), block_threads, 0,
             &add_bias<width, T>, x, bias, residual, y, size, columns);
    });
  });
}

}  // namespace longhand::cuda
