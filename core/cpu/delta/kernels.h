#pragma once

#include <cstdint>

#include "core/cpu/attention/kernels.h"

namespace longhand::cpu {

/// Maximum number of tokens in a chunk.
inline constexpr std::int64_t delta_chunk = 64;

/// One key head of a segment and the `group` query heads that read it. Query head g begins at
/// column g * width of q and dq, and at column g * v_width of y and dy. beta and decay have one
/// number per token. `decay` may be null.
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
  HeadRows<float> error;  // may be null
  const float* before;    // may be null
  float* after;           // may be null or equal to `before`
};

template <class T>
struct DeltaGradients {
  DeltaInput<T> in;
  HeadRows<const T> dy;
  HeadRows<const float> error;
  HeadRows<T> dq, dk, dv;  // may be null
  Store dq_how, dk_how, dv_how;
  HeadRows<float> dbeta, ddecay;  // may be null
  Store dbeta_how, ddecay_how;
};

template <class T>
struct DeltaKernels {
  /// Number of floats of scratch memory. For the backward pass, segments have at most `tokens`
  /// tokens.
  std::int64_t (*forward_scratch)(std::int64_t width, std::int64_t v_width);
  std::int64_t (*backward_scratch)(std::int64_t tokens, std::int64_t width, std::int64_t v_width);
  void (*forward)(const DeltaForward<T>& head, float* scratch);
  void (*backward)(const DeltaGradients<T>& head, float* scratch);
};

}  // namespace longhand::cpu
