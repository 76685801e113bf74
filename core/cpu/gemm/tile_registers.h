#pragma once

#include <cstdint>

#include "core/cpu/simd.h"

/// The processor's tile registers: eight tiles, each with 16 rows of 64 bytes. Two classes have the
/// same interface. TileRegisters executes the processor's instructions. TileModel
/// (tests/tile_model.h) emulates them, so that code for tile registers can be tested on any
/// machine.
namespace longhand::cpu::LONGHAND_ISA {

inline constexpr int tile_rows = 16;
inline constexpr int tile_row_bytes = 64;

#if defined(LONGHAND_ISA_IS_AMX)
/// The tile registers of AMX. Instructions name them by constants, and their contents are kept
/// between calls on the same thread. The functions are written in assembly, because the compiler's
/// intrinsics accept only literal register numbers.
struct TileRegisters {
  /// Configures palette 1: all eight tiles at full size.
  void configure() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    static_assert(sizeof(shape) == 64);
    for (int t = 0; t < 8; ++t) {
      shape.row_bytes[t] = tile_row_bytes;
      shape.rows[t] = tile_rows;
    }
    asm volatile("ldtilecfg %0" : : "m"(shape));
  }
  void release() { asm volatile("tilerelease"); }

  template <int T>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  void load(const void* from, std::int64_t row_stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(row_stride), "i"(T) : "memory");
  }
  template <int T>
  void store(void* to, std::int64_t row_stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(row_stride), "i"(T) : "memory");
  }
  /// Adds the product of tile A (16 rows of 32 bf16) and tile B (16 rows of 16 bf16 pairs) to tile
  /// Sum (16 x 16 floats):
  ///   sum[i][j] += sum over p of A[i][2p] B[p][2j] + A[i][2p+1] B[p][2j+1]
  template <int Sum, int A, int B>
  void multiply_add() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(Sum), "i"(A), "i"(B));
  }
};
#endif

}  // namespace longhand::cpu::LONGHAND_ISA
