#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/dtype.h"

namespace longhand::cpu {

/// The factors of a step of Adam (core/contract/optimizer.h). They are equal for all entries of a
/// parameter.
struct AdamFactors {
  float gradient;      // factor that multiplies the gradient
  float coupled;       // coupled weight decay; 0 if the decay is decoupled
  float kept;          // factor of the parameter: 1 - learning rate * decoupled weight decay
  float beta1, rest1;  // rest1 is 1 - beta1
  float beta2, rest2;  // rest2 is 1 - beta2
  float rate;          // learning rate / (1 - beta1^step)
  float scale_v;       // factor of the second moment v: 1 / (1 - beta2^step)
  float epsilon;
};

/// M and V are the element types of the moments m and v.
template <class M, class V>
struct AdamKernels {
  void (*step)(const AdamFactors& factors, float* w, const float* gradient, M* m, V* v,
               std::int64_t n);
};

struct SgdFactors {
  float gradient;  // factor that multiplies the gradient
  float decay, momentum, rate;
};

struct SgdKernels {
  void (*step)(const SgdFactors& factors, float* w, const float* gradient, float* velocity,
               std::int64_t n);
};

}  // namespace longhand::cpu
