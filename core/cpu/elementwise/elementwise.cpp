#include "core/contract/elementwise.h"

#include <cstring>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/elementwise/kernels.h"

namespace longhand::cpu {
namespace {

template <class T>
const T* data_or_null(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

}  // namespace

void run(CpuBackend& backend, const Fill& op) {
  const std::int64_t n = op.y.size();
  const auto whole_numbers = [&]<class T>(T) {
    parallel_for(backend.threads(), n, grain, [&](std::int64_t begin, std::int64_t end) {
      std::fill(op.y.data<T>() + begin, op.y.data<T>() + end, static_cast<T>(op.value));
    });
  };
  if (op.y.dtype() == DType::i32) return whole_numbers(std::int32_t{});
  if (op.y.dtype() == DType::u8) return whole_numbers(std::uint8_t{});
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const Store how = store_to(op.y);
    parallel_for(backend.threads(), n, grain, [&](std::int64_t begin, std::int64_t end) {
      k.fill(static_cast<float>(op.value), op.y.data<T>() + begin, how, end - begin);
    });
  });
}

void run(CpuBackend& backend, const Copy& op) {
  if (op.y.same_memory(op.x) && op.x.dtype() == op.y.dtype()) return;
  const std::int64_t n = op.x.size();
  if (!is_float(op.y.dtype())) {  // integers: x has the same type as y
    const auto* from = static_cast<const std::byte*>(op.x.address());
    auto* to = static_cast<std::byte*>(op.y.address());
    parallel_for(backend.threads(), static_cast<std::int64_t>(op.x.bytes()), 4 * grain,
                 [&](std::int64_t begin, std::int64_t end) {
                   std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
                 });
    return;
  }
  visit_activation(op.y.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const Store how = store_to(op.y);
    const auto convert = [&]<class From>(void (*kernel)(const From*, T*, Store, std::int64_t)) {
      parallel_for(backend.threads(), n, grain, [&](std::int64_t begin, std::int64_t end) {
        kernel(op.x.data<From>() + begin, op.y.data<T>() + begin, how, end - begin);
      });
    };
    switch (op.x.dtype()) {
      case DType::bf16:
        return convert(k.from_bf16);
      case DType::i32:
        return convert(k.from_i32);
      case DType::u8:
        return convert(k.from_u8);
      default:
        return convert(k.from_f32);
    }
  });
}

void run(CpuBackend& backend, const Scale& op) {
  if (!op.y) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const Store how = unless_in_place(store_to(op.y), op.y, op.x);
    const T* x = op.x.data<T>();
    T* y = op.y.tensor.data<T>();
    parallel_for(backend.threads(), op.x.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      k.scale(x + begin, static_cast<float>(op.alpha), y + begin, how, end - begin);
    });
  });
}

void run(CpuBackend& backend, const Activate& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const auto kernel = k.formulas[static_cast<int>(op.f)].activate;
    const Store how = unless_in_place(store_to(op.y), op.y, op.x);
    const T* x = op.x.data<T>();
    T* y = op.y.data<T>();
    parallel_for(backend.threads(), op.x.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      kernel(x + begin, y + begin, how, end - begin);
    });
  });
}

void run(CpuBackend& backend, const ActivateBackward& op) {
  if (!op.dx) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const auto kernel = k.formulas[static_cast<int>(op.f)].activate_backward;
    const Store how = unless_in_place(unless_in_place(store_to(op.dx), op.dx, op.x), op.dx, op.dy);
    const T *x = op.x.data<T>(), *dy = op.dy.data<T>();
    T* dx = op.dx.tensor.data<T>();
    parallel_for(backend.threads(), op.x.size(), grain, [&](std::int64_t begin, std::int64_t end) {
      kernel(x + begin, dy + begin, dx + begin, how, end - begin);
    });
  });
}

void run(CpuBackend& backend, const Gate& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const auto kernel = k.formulas[static_cast<int>(op.f)].gate;
    const std::int64_t w = op.y.columns();
    const Store how = store_to(op.y, w);
    const T* x = op.x.data<T>();
    T* y = op.y.data<T>();
    parallel_for(backend.threads(), op.y.rows(), rows_per_chunk(2 * w),
                 [&](std::int64_t begin, std::int64_t end) {
                   kernel(x + begin * 2 * w, y + begin * w, how, end - begin, w);
                 });
  });
}

void run(CpuBackend& backend, const GateBackward& op) {
  if (!op.dx) return;
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const auto kernel = k.formulas[static_cast<int>(op.f)].gate_backward;
    const std::int64_t w = op.dy.columns();
    const Store how = unless_in_place(store_to(op.dx, w), op.dx, op.x);
    const T *x = op.x.data<T>(), *dy = op.dy.data<T>();
    T* dx = op.dx.tensor.data<T>();
    parallel_for(backend.threads(), op.dy.rows(), rows_per_chunk(2 * w),
                 [&](std::int64_t begin, std::int64_t end) {
                   kernel(x + begin * 2 * w, dy + begin * w, dx + begin * 2 * w, how, end - begin,
                          w);
                 });
  });
}

void run(CpuBackend& backend, const AddBias& op) {
  visit_activation(op.x.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<ElementwiseKernels<T>>(backend.isa());
    const std::int64_t n = op.x.columns();
    const Store how =
        unless_in_place(unless_in_place(store_to(op.y, n), op.y, op.x), op.y, op.residual);
    const T *x = op.x.data<T>(), *residual = data_or_null<T>(op.residual);
    const float* bias = data_or_null<float>(op.bias);
    T* y = op.y.data<T>();
    parallel_for(backend.threads(), op.x.rows(), rows_per_chunk(n),
                 [&](std::int64_t begin, std::int64_t end) {
                   k.add_bias(x + begin * n, bias, residual ? residual + begin * n : nullptr,
                              y + begin * n, how, end - begin, n);
                 });
  });
}

}  // namespace longhand::cpu
