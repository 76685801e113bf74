#pragma once

#include "cuda/emulator/device.h"

/// The functions of cuda/tensor_cores.h as plain loops. set_tensor_cores() (emulator/backend.h)
/// chooses how sums are rounded. By default, products are added one after another in f32.
namespace longhand::emulator {

struct Fragments {
  float* c;
  const unsigned *a, *b;
};
/// multiply_tf32 computes c [16, 8] += a [16, 8] b [8, 8], and multiply_bf16 computes c [16, 8] +=
/// a [16, 16] b [16, 8]. Each payload points to a lane's Fragments, its entries of a, b and c.
void multiply_tf32(void* const payloads[32]);
void multiply_bf16(void* const payloads[32]);

struct Matrices {
  const bf16* row;
  unsigned* words;
};
/// The instruction ldmatrix of a warp, which loads four 8 x 8 matrices. Each payload points to a
/// lane's Matrices: a row of one matrix, and the words that the lane receives.
void load_matrices(void* const payloads[32]);
void load_matrices_transposed(void* const payloads[32]);

}  // namespace longhand::emulator

namespace longhand::cuda {

inline unsigned to_tf32(float x) {
  const auto word = std::bit_cast<unsigned>(x);
  if ((word & 0x7f800000u) == 0x7f800000u) return word;
  return (word + 0x1000u) & 0xffffe000u;
}

inline float power_of_two(float x) { return std::exp2(x); }

inline unsigned pack_bf16(float low, float high) {
  return unsigned{bf16(low).bits} | unsigned{bf16(high).bits} << 16;
}

inline void mma_tf32_16x8x8(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                            LONGHAND_SITE) {
  const unsigned b[2] = {b0, b1};
  emulator::Fragments fragments{c, a, b};
  emulator::warp_value(0xffffffffu, fragments, &emulator::multiply_tf32, file, line);
}
inline void mma_bf16_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                             LONGHAND_SITE) {
  const unsigned b[2] = {b0, b1};
  emulator::Fragments fragments{c, a, b};
  emulator::warp_value(0xffffffffu, fragments, &emulator::multiply_bf16, file, line);
}

inline void load_matrices(unsigned (&words)[4], const bf16* row, LONGHAND_SITE) {
  require_16_byte_boundary(row);
  emulator::watch::read(row, 16);
  emulator::Matrices matrices{row, words};
  emulator::warp_value(0xffffffffu, matrices, &emulator::load_matrices, file, line);
}
inline void load_matrices_transposed(unsigned (&words)[4], const bf16* row, LONGHAND_SITE) {
  require_16_byte_boundary(row);
  emulator::watch::read(row, 16);
  emulator::Matrices matrices{row, words};
  emulator::warp_value(0xffffffffu, matrices, &emulator::load_matrices_transposed, file, line);
}

}  // namespace longhand::cuda
