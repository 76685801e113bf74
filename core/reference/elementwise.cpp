#include "core/contract/elementwise.h"

#include <cstring>

#include "core/formulas.h"
#include "core/reference/reference_backend.h"
#include "core/reference/rows.h"

namespace longhand::reference {

void run(ReferenceBackend&, const Fill& op) {
  const auto fill = [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bf16>) {  // require_dtype() rejects bf16
      for (std::int64_t i = 0; i < op.y.size(); ++i) op.y.data<T>()[i] = static_cast<T>(op.value);
    }
  };
  visit_dtype(op.y.dtype(), fill);
}

void run(ReferenceBackend&, const Copy& op) {
  if (op.x.dtype() == op.y.dtype()) {
    if (op.x.bytes() > 0) std::memmove(op.y.address(), op.x.address(), op.x.bytes());
    return;
  }
  const Result y(op.y);
  const auto convert = [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bf16>) {
      const T* x = op.x.data<T>();
      for (std::int64_t i = 0; i < op.x.size(); ++i) y.put(i, static_cast<double>(x[i]));
    }
  };
  visit_dtype(op.x.dtype(), convert);
}

void run(ReferenceBackend&, const Scale& op) {
  const Rows x(op.x);
  const Result y(op.y);
  for (std::int64_t i = 0; i < op.x.size(); ++i) y.put(i, op.alpha * x(i));
}

void run(ReferenceBackend&, const Activate& op) {
  const Rows x(op.x);
  const Result y(op.y);
  with_formula(op.f, [&](auto f) {
    for (std::int64_t i = 0; i < op.x.size(); ++i) y.put(i, f.value(x(i)));
  });
}

void run(ReferenceBackend&, const ActivateBackward& op) {
  const Rows x(op.x), dy(op.dy);
  const Result dx(op.dx);
  with_formula(op.f, [&](auto f) {
    for (std::int64_t i = 0; i < op.x.size(); ++i) dx.put(i, dy(i) * f.derivative(x(i)));
  });
}

void run(ReferenceBackend&, const Gate& op) {
  const Rows x(op.x);
  const Result y(op.y);
  const std::int64_t w = op.y.columns();
  with_formula(op.f, [&](auto f) {
    for (std::int64_t i = 0; i < op.x.rows(); ++i) {
      for (std::int64_t j = 0; j < w; ++j) y.put(i, j, f.value(x(i, j)) * x(i, w + j));
    }
  });
}

void run(ReferenceBackend&, const GateBackward& op) {
  const Rows x(op.x), dy(op.dy);
  const Result dx(op.dx);
  const std::int64_t w = op.dy.columns();
  with_formula(op.f, [&](auto f) {
    for (std::int64_t i = 0; i < op.x.rows(); ++i) {
      for (std::int64_t j = 0; j < w; ++j) {
        // Reads both entries of x before writing dx, because dx may share x's memory.
        const double gated = x(i, j), by = x(i, w + j);
        dx.put(i, j, dy(i, j) * f.derivative(gated) * by);
        dx.put(i, w + j, dy(i, j) * f.value(gated));
      }
    }
  });
}

void run(ReferenceBackend&, const AddBias& op) {
  const Rows x(op.x), bias(op.bias), residual(op.residual);
  const Result y(op.y);
  for (std::int64_t i = 0; i < op.x.rows(); ++i) {
    for (std::int64_t j = 0; j < op.x.columns(); ++j) {
      y.put(i, j, x(i, j) + (op.bias ? bias(j) : 0) + (op.residual ? residual(i, j) : 0));
    }
  }
}

}  // namespace longhand::reference
