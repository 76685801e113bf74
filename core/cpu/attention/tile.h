#pragma once

#include <cstdint>

#include "core/cpu/attention/product.h"
#include "core/cpu/simd.h"

/// The innermost matrix product of attention. It broadcasts each word of a few rows of the left
/// operand, and multiplies it by SIMD vectors of the right operand.
namespace longhand::cpu::LONGHAND_ISA::attention {

/// Number of rows of the tiles in which results are computed. The number of rows of every scratch
/// matrix is rounded up to a multiple of it.
inline constexpr int tile_rows = 8;

// The innermost product keeps its sums in registers: register_rows rows of register_vectors SIMD
// vectors. They fill 24 of 32 vector registers, or 12 of 16.
inline constexpr int register_rows = registers == 32 ? 8 : 4;
inline constexpr int register_vectors = 3;

/// Describes the left operand of a matrix product: entry (r, k) is the word at[r * row + k * step].
struct Left {
  const float* at;
  std::int64_t row, step;
};

/// Computes c_r = sum_k a(r, k) b_k for `rows` rows of the result c, each with `vectors` SIMD
/// vectors of columns. b_k is row k of b. The sum is over `depth` words. If `add` is true, the
/// complete sum is added to c_r. Callers thus compute long sums in pieces, which keeps rounding
/// errors small.
///
/// The parameters a, a_row and a_step are the members of the struct Left. If the struct itself were
/// passed, the compiler would copy it to the stack with a vector store, which executes only after
/// all products of the previous tile. The next tile reads the struct, so it would start late. At a
/// depth of 64, a tile would take 7% longer.
template <class Product, int rows, int vectors>
[[gnu::noinline]] void tile(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
                            std::int64_t b_stride, std::int64_t depth, float* c,
                            std::int64_t c_stride, bool add) {
  Vec sums[rows][vectors];
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < vectors; ++n) sums[r][n] = Vec(0.0f);
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    Vec right[vectors];
#pragma GCC unroll 4
    for (int n = 0; n < vectors; ++n) right[n] = load(b + n * lanes);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vec left(a[r * a_row]);
#pragma GCC unroll 4
      for (int n = 0; n < vectors; ++n) {
        sums[r][n] = Product::fold(left, right[n], sums[r][n]);
      }
    }
    a += a_step;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 4
    for (int n = 0; n < vectors; ++n) {
      float* const to = c + r * c_stride + n * lanes;
      store(to, add ? load(to) + sums[r][n] : sums[r][n]);
    }
  }
}

/// Calls tile() to compute tile_rows rows of c with any number of SIMD vectors of columns.
template <class Product>
inline void row_tile(Left a, const float* b, std::int64_t b_stride, std::int64_t depth, float* c,
                     std::int64_t c_stride, int vectors, bool add) {
  for (int n = 0; n < vectors;) {
    const int left = vectors - n;
    const int take = left == 4 ? 2 : (left < register_vectors ? left : register_vectors);
    for (int r = 0; r < tile_rows; r += register_rows) {
      const float* const rows = a.at + r * a.row;
      float* to = c + r * c_stride + n * lanes;
      const float* from = b + n * lanes;
      if (take == 3) {
        tile<Product, register_rows, 3>(rows, a.row, a.step, from, b_stride, depth, to, c_stride,
                                        add);
      } else if (take == 2) {
        tile<Product, register_rows, 2>(rows, a.row, a.step, from, b_stride, depth, to, c_stride,
                                        add);
      } else {
        tile<Product, register_rows, 1>(rows, a.row, a.step, from, b_stride, depth, to, c_stride,
                                        add);
      }
    }
    n += take;
  }
}

}  // namespace longhand::cpu::LONGHAND_ISA::attention
