#pragma once

#include <cstdint>

#include "core/cpu/isa.h"
#include "core/dtype.h"

/// SimdProbe is a table of loops over arrays, one table for each instruction set
/// (simd_probe.simd.cpp). Each loop calls one function of the SIMD vector type. The number n of
/// elements is arbitrary: elements after the last full vector are processed with partial loads and
/// stores.
namespace longhand::cpu {

struct SimdProbe {
  int lanes;
  bool fused_multiply_add;
  using Map = void (*)(const float* x, float* y, std::int64_t n);
  Map exp, log, log1p, tanh, erf, sigmoid, sine, cosine, sqrt;
  void (*narrow)(const float* x, bf16* y, std::int64_t n);
  void (*widen)(const bf16* x, float* y, std::int64_t n);
  void (*copy_words)(const std::int32_t* x, float* y, std::int64_t n);
  float (*sum)(const float* x, std::int64_t n);      // adds in each lane, then adds the lanes
  float (*largest)(const float* x, std::int64_t n);  // n must be at least the number of lanes
  float (*fma)(float a, float b, float c);
  bool (*any_greater)(const float* x, float bound);           // x is one SIMD vector
  void (*greater)(const float* a, const float* b, float* y);  // y = max(a, b) for one SIMD vector
};

}  // namespace longhand::cpu
