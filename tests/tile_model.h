#pragma once

#include "core/cpu/gemm/tile_registers.h"

namespace longhand::cpu::LONGHAND_ISA {

/// TileRegisters (AMX) in plain C++ code that follows the pseudocode of Intel's manual. Products
/// and sums are in f32. Of each two neighbouring products along k, the one with the even index is
/// added first. Subnormals are treated as zero.
struct TileModel {
  alignas(64) std::uint8_t tiles[8][tile_rows][tile_row_bytes];
  bool configured = false;

  void configure() { configured = true; }
  void release() { configured = false; }

  template <int T>
  void zero() {
    require_configured();
    __builtin_memset(tiles[T], 0, sizeof tiles[T]);
  }
  template <int T>
  void load(const void* from, std::int64_t row_stride) {
    require_configured();
    for (int i = 0; i < tile_rows; ++i) {
      __builtin_memcpy(tiles[T][i], static_cast<const char*>(from) + i * row_stride,
                       tile_row_bytes);
    }
  }
  template <int T>
  void store(void* to, std::int64_t row_stride) {
    require_configured();
    for (int i = 0; i < tile_rows; ++i) {
      __builtin_memcpy(static_cast<char*>(to) + i * row_stride, tiles[T][i], tile_row_bytes);
    }
  }
  template <int Sum, int A, int B>
  void multiply_add() {
    require_configured();
    for (int i = 0; i < tile_rows; ++i) {
      float sums[16];
      __builtin_memcpy(sums, tiles[Sum][i], sizeof sums);
      for (int p = 0; p < 16; ++p) {
        for (int half = 0; half < 2; ++half) {
          const float a = element(A, i, 2 * p + half);
          for (int j = 0; j < 16; ++j) sums[j] += a * element(B, p, 2 * j + half);
        }
      }
      __builtin_memcpy(tiles[Sum][i], sums, sizeof sums);
    }
  }

 private:
  void require_configured() const {
    if (!configured) __builtin_trap();  // without configuration, the processor raises a fault, too
  }
  float element(int tile, int row, int at) const {
    std::uint16_t half;
    __builtin_memcpy(&half, &tiles[tile][row][2 * at], sizeof half);
    if ((half & 0x7f80) == 0) half &= 0x8000;
    const std::uint32_t word = static_cast<std::uint32_t>(half) << 16;
    float value;
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
  }
};

}  // namespace longhand::cpu::LONGHAND_ISA
