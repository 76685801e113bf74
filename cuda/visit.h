#pragma once

#include "core/contract/target.h"
#include "core/error.h"
#include "cuda/floats.h"

namespace longhand::cuda {

/// Calls f(float{}) if `type` is f32, or f(bf16{}) if it is bf16. Throws an Error for other types.
template <class F>
decltype(auto) visit_activation(DType type, F&& f) {
  if (type == DType::bf16) return f(bf16{});
  LONGHAND_CHECK(type == DType::f32, "cuda: expected f32 or bf16, got ", type);
  return f(float{});
}

template <class T>
T* data_or_null(const Tensor& x) {
  return x ? x.data<T>() : nullptr;
}

template <class T>
Out<T> out(const Target& y) {
  return {data_or_null<T>(y.tensor), y.add};
}

}  // namespace longhand::cuda
