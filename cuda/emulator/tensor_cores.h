#pragma once

#include "cuda/emulator/device.h"

/// Implements cuda/tensor_cores.h with plain loops. The hardware's order of summation is not
/// documented. Here sums are f32, in the order of k.
namespace longhand::emulator {

struct Fragments {
  float* c;
  const unsigned *a, *b;
};

inline float upper_half(unsigned word) { return std::bit_cast<float>(word & 0xffff0000u); }
inline float lower_half(unsigned word) { return std::bit_cast<float>(word << 16); }
/// The hardware reads only the upper 19 bits of a tf32 operand.
inline float tf32(unsigned word) { return std::bit_cast<float>(word & 0xffffe000u); }

/// c [16, 8] += a [16, depth] b [depth, 8]. Layout defines which lane and which word of a fragment
/// contain entry k.
template <class Layout>
void multiply(void* const payloads[32]) {
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      const auto lane = [&](int index) { return static_cast<const Fragments*>(payloads[index]); };
      float& c = lane(row % 8 * 4 + column / 2)->c[row / 8 * 2 + column % 2];
      for (int k = 0; k < Layout::depth; ++k) {
        c += Layout::value(lane(row % 8 * 4 + Layout::lane(k))->a[Layout::word(k) * 2 + row / 8],
                           k) *
             Layout::value(lane(column * 4 + Layout::lane(k))->b[Layout::word(k)], k);
      }
    }
  }
}

struct Tf32Layout {
  static constexpr int depth = 8;
  static int lane(int k) { return k % 4; }
  static int word(int k) { return k / 4; }
  static float value(unsigned word, int) { return tf32(word); }
};
struct Bf16Layout {
  static constexpr int depth = 16;
  static int lane(int k) { return k % 8 / 2; }
  static int word(int k) { return k / 8; }
  static float value(unsigned word, int k) { return k % 2 ? upper_half(word) : lower_half(word); }
};

struct Matrices {
  const bf16* row;
  unsigned* words;
};

template <bool transposed>
__attribute__((no_sanitize("thread"))) void load(void* const payloads[32]) {
  for (int lane = 0; lane < 32; ++lane) {
    auto& to = *static_cast<Matrices*>(payloads[lane]);
    for (int i = 0; i < 4; ++i) {
      unsigned word = 0;
      for (int j = 0; j < 2; ++j) {
        const int g = lane / 4, t = 2 * (lane % 4) + j;
        const int row = transposed ? t : g, column = transposed ? g : t;
        const auto* const from = static_cast<const Matrices*>(payloads[8 * i + row])->row;
        word |= unsigned{from[column].bits} << (16 * j);
      }
      to.words[i] = word;
    }
  }
}

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
  emulator::warp_value(0xffffffffu, fragments, &emulator::multiply<emulator::Tf32Layout>, file,
                       line);
}
inline void mma_bf16_16x8x16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                             LONGHAND_SITE) {
  const unsigned b[2] = {b0, b1};
  emulator::Fragments fragments{c, a, b};
  emulator::warp_value(0xffffffffu, fragments, &emulator::multiply<emulator::Bf16Layout>, file,
                       line);
}

inline void load_matrices(unsigned (&words)[4], const bf16* row, LONGHAND_SITE) {
  require_16_byte_boundary(row);
  emulator::watch::read(row, 16);
  emulator::Matrices matrices{row, words};
  emulator::warp_value(0xffffffffu, matrices, &emulator::load<false>, file, line);
}
inline void load_matrices_transposed(unsigned (&words)[4], const bf16* row, LONGHAND_SITE) {
  require_16_byte_boundary(row);
  emulator::watch::read(row, 16);
  emulator::Matrices matrices{row, words};
  emulator::warp_value(0xffffffffu, matrices, &emulator::load<true>, file, line);
}

}  // namespace longhand::cuda
