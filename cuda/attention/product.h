#pragma once

#include "core/contract/matmul.h"
#include "cuda/attention/heads.h"
#include "cuda/tensor_cores.h"

/// The two matrix products of the attention kernels, for one warp. The left operand has one or
/// several bands of 16 rows, and the right operand is a tile in shared memory. The result c is in
/// registers, in the layout of tensor cores: with g = lane / 4 and t = lane % 4, c[band][i] of a
/// lane contains the entries
///   (g, 8 i + 2 t), (g, 8 i + 2 t + 1), (g + 8, 8 i + 2 t), (g + 8, 8 i + 2 t + 1)
///
///   dots   c [16, 8 n] += a b^T;  a [16, width] and b [8 n, width] are in shared memory
///   mix    c [16, 8 n] += p b;    p [16, 8 m] is in registers in the layout of c,
///                                 b [8 m, 8 n] is part of a tile of `width` columns
///
/// A warp loads each part of b into registers once and uses it for all its bands.
///
/// Rows of a tile are padded by 16 bytes, so that the eight rows that a fragment reads are in
/// different banks. Products and copies do not access the padding, so small arrays can be stored in
/// it; see padding().
namespace longhand::cuda {

__device__ __forceinline__ int lane_row() { return lane_index() / 4; }
__device__ __forceinline__ int lane_column() { return lane_index() % 4; }

/// f32 products, without tensor cores.
struct ExactProduct {
  using Element = float;
  static constexpr bool rounds = false;  // tiles contain f32 entries without rounding
  static constexpr int stride(int width) { return width + 4; }
  __device__ __forceinline__ static Element element(float x) { return x; }

  template <int width, int bands, int n>
  __device__ __forceinline__ static void dots(float (&c)[bands][n][4], const Element* a,
                                              const Element* b) {
    const Element* const rows = a + lane_row() * stride(width);
    const Element* const columns = b + 2 * lane_column() * stride(width);
#pragma unroll 1
    for (int k = 0; k < width; k += 4) {
      Pack<float> x[2 * bands];
#pragma unroll
      for (int i = 0; i < 2 * bands; ++i) x[i] = load_pack(rows + 8 * i * stride(width) + k);
#pragma unroll
      for (int i = 0; i < n; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const Pack<float> y = load_pack(columns + (8 * i + j) * stride(width) + k);
#pragma unroll
          for (int t = 0; t < bands; ++t) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              c[t][i][j] += x[2 * t].at[e] * y.at[e];
              c[t][i][2 + j] += x[2 * t + 1].at[e] * y.at[e];
            }
          }
        }
      }
    }
  }

  template <int width, int bands, int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[bands][n][4], const float (&p)[bands][m][4],
                                             const Element* b) {
    constexpr int step = stride(width);
    const int quad = lane_row() * 4;
#pragma unroll
    for (int i = 0; i < m; ++i) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        float x[2 * bands];
#pragma unroll
        for (int t = 0; t < 2 * bands; ++t) {
          x[t] = __shfl_sync(full_warp, p[t / 2][i][t % 2 * 2 + k % 2], quad + k / 2);
        }
        const Element* const row = b + (8 * i + k) * step + 2 * lane_column();
#pragma unroll
        for (int j = 0; j < n; ++j) {
          const Pair<float> y = *reinterpret_cast<const Pair<float>*>(row + 8 * j);
#pragma unroll
          for (int t = 0; t < bands; ++t) {
            c[t][j][0] += x[2 * t] * y.first;
            c[t][j][1] += x[2 * t] * y.second;
            c[t][j][2] += x[2 * t + 1] * y.first;
            c[t][j][3] += x[2 * t + 1] * y.second;
          }
        }
      }
    }
  }
};

/// Operands are tf32: a sign, f32's exponent and 10 fraction bits. Tiles contain rounded entries.
struct Tf32Product {
  using Element = float;
  static constexpr bool rounds = true;
  static constexpr int stride(int width) { return width + 4; }
  __device__ __forceinline__ static Element element(float x) { return __uint_as_float(to_tf32(x)); }

  template <int width, int bands, int n>
  __device__ __forceinline__ static void dots(float (&c)[bands][n][4], const Element* a,
                                              const Element* b) {
    constexpr int eight = 8 * stride(width);
    const int lane = lane_row() * stride(width) + lane_column();
    const Element *const rows = a + lane, *const columns = b + lane;
#pragma unroll
    for (int k = 0; k < width; k += 8) {
      unsigned x[bands][4];
#pragma unroll
      for (int t = 0; t < bands; ++t) {
        const Element* const row = rows + 2 * t * eight + k;
        x[t][0] = bits(row);
        x[t][1] = bits(row + eight);
        x[t][2] = bits(row + 4);
        x[t][3] = bits(row + eight + 4);
      }
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const unsigned y0 = bits(columns + i * eight + k), y1 = bits(columns + i * eight + k + 4);
#pragma unroll
        for (int t = 0; t < bands; ++t) mma_tf32_16x8x8(c[t][i], x[t], y0, y1);
      }
    }
  }

  /// c += p b. The product sums over the rows of b, and these may be added in any order. Of each
  /// eight rows of b, row 2 t is used as row t, and row 2 t + 1 as row t + 4 (0 <= t < 4). In this
  /// order the registers of p already have the layout that tensor cores require of a left operand.
  template <int width, int bands, int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[bands][n][4], const float (&p)[bands][m][4],
                                             const Element* b) {
    constexpr int step = stride(width);
    const Element* const at = b + 2 * lane_column() * step + lane_row();
#pragma unroll
    for (int i = 0; i < m; ++i) {
      unsigned x[bands][4];
#pragma unroll
      for (int t = 0; t < bands; ++t) {
        x[t][0] = to_tf32(p[t][i][0]);
        x[t][1] = to_tf32(p[t][i][2]);
        x[t][2] = to_tf32(p[t][i][1]);
        x[t][3] = to_tf32(p[t][i][3]);
      }
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const Element* const y = at + 8 * i * step + 8 * j;
        const unsigned y0 = bits(y), y1 = bits(y + step);
#pragma unroll
        for (int t = 0; t < bands; ++t) mma_tf32_16x8x8(c[t][j], x[t], y0, y1);
      }
    }
  }

 private:
  __device__ __forceinline__ static unsigned bits(const float* at) { return __float_as_uint(*at); }
};

struct Bf16Product {
  using Element = bf16;
  static constexpr bool rounds = false;
  static constexpr int stride(int width) { return width + 8; }
  __device__ __forceinline__ static Element element(float x) { return from_float<bf16>(x); }

  template <int width, int bands, int n>
  __device__ __forceinline__ static void dots(float (&c)[bands][n][4], const Element* a,
                                              const Element* b) {
    const int lane = lane_register(), matrix = lane / 8, row = lane % 8;
    const Element* const rows = a + (matrix % 2 * 8 + row) * stride(width) + matrix / 2 * 8;
    const Element* const columns = b + (matrix / 2 * 8 + row) * stride(width) + matrix % 2 * 8;
#pragma unroll
    for (int k = 0; k < width; k += 16) {
      unsigned x[bands][4];
#pragma unroll
      for (int t = 0; t < bands; ++t) load_matrices(x[t], rows + 16 * t * stride(width) + k);
#pragma unroll
      for (int i = 0; i < n; i += 2) {
        unsigned y[4];
        load_matrices(y, columns + 8 * i * stride(width) + k);
#pragma unroll
        for (int t = 0; t < bands; ++t) {
          mma_bf16_16x8x16(c[t][i], x[t], y[0], y[1]);
          mma_bf16_16x8x16(c[t][i + 1], x[t], y[2], y[3]);
        }
      }
    }
  }

  template <int width, int bands, int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[bands][n][4], const float (&p)[bands][m][4],
                                             const Element* b) {
    constexpr int step = stride(width);
    const int lane = lane_register(), matrix = lane / 8, row = lane % 8;
    const Element* const at = b + (matrix % 2 * 8 + row) * step + matrix / 2 * 8;
#pragma unroll
    for (int i = 0; i < m; i += 2) {
      unsigned x[bands][4];
#pragma unroll
      for (int t = 0; t < bands; ++t) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          x[t][e] = pack_bf16(p[t][i + e / 2][e % 2 * 2], p[t][i + e / 2][e % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int j = 0; j < n; j += 2) {
        unsigned y[4];
        load_matrices_transposed(y, at + 8 * i * step + 8 * j);
#pragma unroll
        for (int t = 0; t < bands; ++t) {
          mma_bf16_16x8x16(c[t][j], x[t], y[0], y[1]);
          mma_bf16_16x8x16(c[t][j + 1], x[t], y[2], y[3]);
        }
      }
    }
  }
};

/// The functions dots() and mix() of the type Product (such as Bf16Product), for a left operand
/// that has a single band of 16 rows.
template <class Product, int width, int n>
__device__ __forceinline__ void dots(float (&c)[n][4], const typename Product::Element* a,
                                     const typename Product::Element* b) {
  Product::template dots<width>(reinterpret_cast<float(&)[1][n][4]>(c), a, b);
}
template <class Product, int m, int n>
__device__ __forceinline__ void mix(float (&c)[n][4], const float (&p)[m][4],
                                    const typename Product::Element* b) {
  Product::template mix<8 * n>(reinterpret_cast<float(&)[1][n][4]>(c),
                               reinterpret_cast<const float(&)[1][m][4]>(p), b);
}

/// Address of the four floats of padding after row r of a tile of `slice` columns.
template <class Product, int slice>
__device__ __forceinline__ float* padding(typename Product::Element* tile, int r) {
  return reinterpret_cast<float*>(tile + r * Product::stride(slice) + slice);
}

}  // namespace longhand::cuda
