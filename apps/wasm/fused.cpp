#include <wasm_simd128.h>

#include "core/cpu/isa.h"

namespace longhand::cpu {

/// A WebAssembly engine computes a relaxed multiply-add with one or with two roundings, but always
/// in the same way. This function computes (1 + 2^-23) * (1 - 2^-23) - 1. The result is -2^-46 with
/// one rounding and 0 with two roundings.
bool relaxed_is_fused() {
  volatile float above = 1 + 0x1p-23f, below = 1 - 0x1p-23f;
  const v128_t sum = wasm_f32x4_relaxed_madd(wasm_f32x4_splat(above), wasm_f32x4_splat(below),
                                             wasm_f32x4_splat(-1));
  return wasm_f32x4_extract_lane(sum, 0) != 0;
}

}  // namespace longhand::cpu
