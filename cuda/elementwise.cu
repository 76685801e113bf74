#include "core/contract/elementwise.h"

#include "core/formulas.h"
#include "cuda/cuda_backend.h"
#include "cuda/device.h"
#include "cuda/launch.h"

namespace longhand::cuda {
namespace {

constexpr int threads = 256;

// What each kind of operation does to one element.
struct Scaled {
  float alpha;
  __device__ float operator()(float x) const { return alpha * x; }
};
struct Summed {
  float alpha, beta;
  __device__ float operator()(float a, float b) const { return alpha * a + beta * b; }
};
struct Multiplied {
  __device__ float operator()(float a, float b) const { return a * b; }
};
template <class F>
struct Activated {
  __device__ float operator()(float x) const { return F::value(x); }
};
template <class F>
struct Sloped {
  __device__ float operator()(float x, float dy) const { return dy * F::derivative(x); }
};

/// y_i = f(a_i), or f(a_i, b_i); with `add`, added to what is there. Packs of 16 bytes where all
/// addresses allow it, then what is left of the last pack.
template <class T, class F>
__global__ void map_one(const T* a, T* y, std::int64_t size, F f, bool add, bool packed) {
  constexpr int width = Pack<T>::size;
  const std::int64_t packs = packed ? size / width : 0;
  for (std::int64_t i = thread_in_grid(); i < packs; i += threads_in_grid()) {
    const Pack<T> x = load_pack(a + i * width);
    Pack<T> result = add ? load_pack(y + i * width) : Pack<T>{};
    for (int j = 0; j < width; ++j) {
      const float old = add ? to_float(result.at[j]) : 0.0f;
      result.at[j] = from_float<T>(old + f(to_float(x.at[j])));
    }
    store_pack(y + i * width, result);
  }
  for (std::int64_t i = packs * width + thread_in_grid(); i < size; i += threads_in_grid()) {
    const float old = add ? to_float(y[i]) : 0.0f;
    y[i] = from_float<T>(old + f(to_float(a[i])));
  }
}

template <class T, class F>
__global__ void map_two(const T* a, const T* b, T* y, std::int64_t size, F f, bool add,
                        bool packed) {
  constexpr int width = Pack<T>::size;
  const std::int64_t packs = packed ? size / width : 0;
  for (std::int64_t i = thread_in_grid(); i < packs; i += threads_in_grid()) {
    const Pack<T> u = load_pack(a + i * width), v = load_pack(b + i * width);
    Pack<T> result = add ? load_pack(y + i * width) : Pack<T>{};
    for (int j = 0; j < width; ++j) {
      const float old = add ? to_float(result.at[j]) : 0.0f;
      result.at[j] = from_float<T>(old + f(to_float(u.at[j]), to_float(v.at[j])));
    }
    store_pack(y + i * width, result);
  }
  for (std::int64_t i = packs * width + thread_in_grid(); i < size; i += threads_in_grid()) {
    const float old = add ? to_float(y[i]) : 0.0f;
    y[i] = from_float<T>(old + f(to_float(a[i]), to_float(b[i])));
  }
}

template <class T>
__global__ void fill_kernel(T* y, std::int64_t size, T value) {
  for (std::int64_t i = thread_in_grid(); i < size; i += threads_in_grid()) y[i] = value;
}

template <class From, class To>
__global__ void convert_kernel(const From* x, To* y, std::int64_t size) {
  for (std::int64_t i = thread_in_grid(); i < size; i += threads_in_grid()) {
    y[i] = from_float<To>(to_float(x[i]));
  }
}

/// y_ij = f(x_ij) x_i,(w+j)
template <class F, class T>
__global__ void gate_kernel(const T* x, T* y, std::int64_t size, std::int64_t w, bool packed) {
  constexpr int width = Pack<T>::size;
  const int step = packed ? width : 1;
  const std::int64_t in_row = w / step;
  for (std::int64_t i = thread_in_grid(); i < size / step; i += threads_in_grid()) {
    const std::int64_t row = i / in_row, j = i % in_row * step;
    const T* const gated = x + row * 2 * w + j;
    T* const to = y + row * w + j;
    if (packed) {
      const Pack<T> u = load_pack(gated), v = load_pack(gated + w);
      Pack<T> result;
      for (int l = 0; l < width; ++l) {
        result.at[l] = from_float<T>(F::value(to_float(u.at[l])) * to_float(v.at[l]));
      }
      store_pack(to, result);
    } else {
      *to = from_float<T>(F::value(to_float(gated[0])) * to_float(gated[w]));
    }
  }
}

/// dx_ij = dy_ij f'(x_ij) x_i,(w+j);  dx_i,(w+j) = dy_ij f(x_ij). dx may be x: each thread reads
/// both of its x before it writes.
template <class F, class T>
__global__ void gate_backward_kernel(const T* x, const T* dy, T* dx, std::int64_t size,
                                     std::int64_t w, bool add, bool packed) {
  constexpr int width = Pack<T>::size;
  const int step = packed ? width : 1;
  const std::int64_t in_row = w / step;
  for (std::int64_t i = thread_in_grid(); i < size / step; i += threads_in_grid()) {
    const std::int64_t row = i / in_row, j = i % in_row * step;
    const T* const gated = x + row * 2 * w + j;
    const T* const from = dy + row * w + j;
    T* const to = dx + row * 2 * w + j;
    if (packed) {
      const Pack<T> u = load_pack(gated), v = load_pack(gated + w), g = load_pack(from);
      Pack<T> du = add ? load_pack(to) : Pack<T>{}, dv = add ? load_pack(to + w) : Pack<T>{};
      for (int l = 0; l < width; ++l) {
        const float a = to_float(u.at[l]), b = to_float(v.at[l]), d = to_float(g.at[l]);
        const float old_u = add ? to_float(du.at[l]) : 0.0f;
        const float old_v = add ? to_float(dv.at[l]) : 0.0f;
        du.at[l] = from_float<T>(old_u + d * F::derivative(a) * b);
        dv.at[l] = from_float<T>(old_v + d * F::value(a));
      }
      store_pack(to, du);
      store_pack(to + w, dv);
    } else {
      const float a = to_float(gated[0]), b = to_float(gated[w]), d = to_float(*from);
      const float old_u = add ? to_float(to[0]) : 0.0f, old_v = add ? to_float(to[w]) : 0.0f;
      to[0] = from_float<T>(old_u + d * F::derivative(a) * b);
      to[w] = from_float<T>(old_v + d * F::value(a));
    }
  }
}

/// y_ij = x_ij + bias_j + residual_ij
template <class T>
__global__ void add_bias_kernel(const T* x, const float* bias, const T* residual, T* y,
                                std::int64_t size, std::int64_t columns, bool packed) {
  constexpr int width = Pack<T>::size;
  const int step = packed ? width : 1;
  const std::int64_t in_row = columns / step;
  for (std::int64_t i = thread_in_grid(); i < size / step; i += threads_in_grid()) {
    const std::int64_t at = i * step;
    const float* const b = bias + (bias ? i % in_row * step : 0);
    if (packed) {
      const Pack<T> u = load_pack(x + at);
      const Pack<T> r = residual ? load_pack(residual + at) : Pack<T>{};
      Pack<T> result;
      for (int l = 0; l < width; ++l) {
        result.at[l] = from_float<T>(to_float(u.at[l]) + (bias ? b[l] : 0.0f) +
                                     (residual ? to_float(r.at[l]) : 0.0f));
      }
      store_pack(y + at, result);
    } else {
      y[at] = from_float<T>(to_float(x[at]) + (bias ? *b : 0.0f) +
                            (residual ? to_float(residual[at]) : 0.0f));
    }
  }
}

/// Calls body(T{}) for the element types of activations.
template <class Body>
void with_float_type(DType type, Body&& body) {
  if (type == DType::bf16) {
    body(bf16{});
  } else {
    body(float{});
  }
}

}  // namespace

void CudaBackend::run(const Fill& op) {
  const std::int64_t size = op.y.size();
  if (op.value == 0 && !std::signbit(op.value)) {
    stream_.zero(op.y.address(), op.y.bytes());
    return;
  }
  const auto fill = [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, double>) {  // require_dtype() lets none be made
      T value;
      if constexpr (std::is_same_v<T, bf16>) {
        value = bf16(static_cast<float>(op.value));
      } else {
        value = static_cast<T>(op.value);
      }
      launch(stream_, blocks_for(size, threads), threads, 0, &fill_kernel<T>, op.y.data<T>(), size,
             value);
    }
  };
  visit_dtype(op.y.dtype(), fill);
}

void CudaBackend::run(const Copy& op) {
  if (op.x.dtype() == op.y.dtype()) {
    if (!op.x.same_memory(op.y)) stream_.copy(op.y.address(), op.x.address(), op.x.bytes());
    return;
  }
  const std::int64_t size = op.x.size();
  const auto convert = [&]<class From>(From) {
    if constexpr (!std::is_same_v<From, double>) {
      with_float_type(op.y.dtype(), [&]<class To>(To) {
        if constexpr (!std::is_same_v<From, To>) {
          launch(stream_, blocks_for(size, threads), threads, 0, &convert_kernel<From, To>,
                 op.x.data<From>(), op.y.data<To>(), size);
        }
      });
    }
  };
  visit_dtype(op.x.dtype(), convert);
}

namespace {

/// y_i = f(a_i), or f(a_i, b_i) where b is given.
template <class F>
void map(CudaBackend& backend, F f, const Target& y, const Tensor& a, const Tensor& b = {}) {
  const std::int64_t size = a.size();
  with_float_type(a.dtype(), [&]<class T>(T) {
    const T* const u = a.data<T>();
    T* const to = y.tensor.data<T>();
    const std::int64_t blocks =
        backend.blocks_for((size + Pack<T>::size - 1) / Pack<T>::size, threads);
    if constexpr (requires { f(0.0f, 0.0f); }) {
      const T* const v = b.data<T>();
      launch(backend.stream(), blocks, threads, 0, &map_two<T, F>, u, v, to, size, f, y.add,
             on_16_bytes(u, v, to));
    } else {
      launch(backend.stream(), blocks, threads, 0, &map_one<T, F>, u, to, size, f, y.add,
             on_16_bytes(u, to));
    }
  });
}

}  // namespace

void CudaBackend::run(const Scale& op) {
  map(*this, Scaled{static_cast<float>(op.alpha)}, op.y, op.x);
}

void CudaBackend::run(const Add& op) {
  map(*this, Summed{static_cast<float>(op.alpha), static_cast<float>(op.beta)}, op.y, op.a, op.b);
}

void CudaBackend::run(const Multiply& op) { map(*this, Multiplied{}, op.y, op.a, op.b); }

void CudaBackend::run(const Activate& op) {
  with_formula(op.f, [&](auto f) { map(*this, Activated<decltype(f)>{}, op.y, op.x); });
}

void CudaBackend::run(const ActivateBackward& op) {
  with_formula(op.f, [&](auto f) { map(*this, Sloped<decltype(f)>{}, op.dx, op.x, op.dy); });
}

void CudaBackend::run(const Gate& op) {
  const std::int64_t size = op.y.size(), w = op.y.columns();
  with_float_type(op.x.dtype(), [&]<class T>(T) {
    const T* const x = op.x.data<T>();
    T* const y = op.y.data<T>();
    const bool packed = w % Pack<T>::size == 0 && on_16_bytes(x, y);
    const std::int64_t blocks = blocks_for(packed ? size / Pack<T>::size : size, threads);
    with_formula(op.f, [&](auto f) {
      launch(stream_, blocks, threads, 0, &gate_kernel<decltype(f), T>, x, y, size, w, packed);
    });
  });
}

void CudaBackend::run(const GateBackward& op) {
  const std::int64_t size = op.dy.size(), w = op.dy.columns();
  with_float_type(op.x.dtype(), [&]<class T>(T) {
    const T *const x = op.x.data<T>(), *const dy = op.dy.data<T>();
    T* const dx = op.dx.tensor.data<T>();
    const bool packed = w % Pack<T>::size == 0 && on_16_bytes(x, dy, dx);
    const std::int64_t blocks = blocks_for(packed ? size / Pack<T>::size : size, threads);
    with_formula(op.f, [&](auto f) {
      launch(stream_, blocks, threads, 0, &gate_backward_kernel<decltype(f), T>, x, dy, dx, size, w,
             op.dx.add, packed);
    });
  });
}

void CudaBackend::run(const AddBias& op) {
  const std::int64_t size = op.x.size(), columns = op.x.columns();
  with_float_type(op.x.dtype(), [&]<class T>(T) {
    const T* const x = op.x.data<T>();
    const T* const residual = op.residual ? op.residual.data<T>() : nullptr;
    T* const y = op.y.data<T>();
    const float* const bias = op.bias ? op.bias.data<float>() : nullptr;
    const bool packed = columns % Pack<T>::size == 0 && on_16_bytes(x, residual, y);
    const std::int64_t blocks = blocks_for(packed ? size / Pack<T>::size : size, threads);
    launch(stream_, blocks, threads, 0, &add_bias_kernel<T>, x, bias, residual, y, size, columns,
           packed);
  });
}

}  // namespace longhand::cuda
