#pragma once

#include "cuda/device.h"

/// Tensor core products c += a b of one warp, and helpers that load a and b into registers. With
/// g = lane / 4 and t = lane % 4, the registers of a lane contain these entries (row, column):
///   c [16, 8], f32:   c[0], c[1]: (g, 2 t), (g, 2 t + 1);
///                     c[2], c[3]: (g + 8, 2 t), (g + 8, 2 t + 1);
///   a [16, 8], tf32:  (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4);
///   b [8, 8], tf32:   (t, g), (t + 4, g).
/// A register contains two bf16 entries, the first in its lower half. Here n .. means n and n + 1:
///   a [16, 16], bf16:
///     (g, 2 t ..), (g + 8, 2 t ..), (g, 2 t + 8 ..), (g + 8, 2 t + 8 ..);
///   b [16, 8], bf16:  (2 t .., g), (2 t + 8 .., g).
#if defined(LONGHAND_CUDA_EMULATED)
#include "cuda/emulator/tensor_cores.h"
#else

namespace longhand::cuda {

/// Rounds to tf32 (10 fraction bits), ties away from zero.
__device__ __forceinline__ unsigned to_tf32(float x) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(x));
  return rounded;
}

/// Packs two floats as bf16, the first in the lower half.
__device__ __forceinline__ unsigned pack_bf16(float low, float high) {
  unsigned both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

/// 2^x with an error of at most 2 units in the last place, in one instruction. Results below the
/// smallest normal number are 0.
__device__ __forceinline__ float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// c += a b for c [16, 8], a [16, 8] and b [8, 8]. The entries that each lane holds are listed at
/// the top of this file.
__device__ __forceinline__ void mma_tf32_16x8x8(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_bf16_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                                 unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads four 8 x 8 bf16 matrices from shared memory. Lane 8 i + r passes the address of row r of
/// matrix i. With g = lane / 4 and t = lane % 4, a lane receives the entries (g, 2 t) and
/// (g, 2 t + 1) of matrix i in words[i]. load_matrices_transposed() returns the entries (2 t, g)
/// and (2 t + 1, g) instead.
__device__ __forceinline__ void load_matrices(unsigned (&words)[4], const bf16* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(unsigned (&words)[4], const bf16* row) {
  const auto at = static_cast<unsigned>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}

}  // namespace longhand::cuda
#endif
