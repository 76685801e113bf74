#pragma once

#include <cstdint>

#include "core/cpu/attention/kernels.h"

namespace longhand::cpu {

/// Maximum number of tokens that the kernels of the delta rule process together, as one chunk.
inline constexpr std::int64_t delta_chunk = 64;

/// The inputs of the delta rule for one key head of a segment and the `group` query heads that read
/// it. Query head g begins at column g * width of q and dq, and at column g * v_width of y and dy.
/// beta and decay have one number per token. `decay` may be null.
template <class T>
struct DeltaInput {
  std::int64_t tokens, width, v_width, group;
  float scale;
  HeadRows<const T> q, k;
  HeadRows<const float> beta, decay;
};

template <class T>
struct DeltaForward {
  DeltaInput<T> in;
  HeadRows<const T> v;
  HeadRows<T> y;
  HeadRows<float> error;  // receives the errors for the backward pass (see Delta); may be null
  const float* before;    // the memory before the first token; null means zeros
  // Receives the memory after the last token. May be null or equal to `before`.
  float* after;
};

template <class T>
struct DeltaGradients {
  DeltaInput<T> in;
  HeadRows<const T> dy;
  HeadRows<const float> error;
  HeadRows<T> dq, dk, dv;  // null for gradients that are not required
  Store dq_how, dk_how, dv_how;
  HeadRows<float> dbeta, ddecay;  // null for gradients that are not required
  Store dbeta_how, ddecay_how;
};

template <class T>
struct DeltaKernels {
  /// forward_scratch() and backward_scratch() return the number of floats of scratch memory that a
  /// call of forward() or backward() needs. `tokens` is the maximum number of tokens of a segment.
  std::int64_t (*forward_scratch)(std::int64_t width, std::int64_t v_width);
  std::int64_t (*backward_scratch)(std::int64_t tokens, std::int64_t width, std::int64_t v_width);
  void (*forward)(const DeltaForward<T>& head, float* scratch);
  void (*backward)(const DeltaGradients<T>& head, float* scratch);
};

}  // namespace longhand::cpu
