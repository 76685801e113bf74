#pragma once

#include "core/contract/matmul.h"
#include "cuda/attention/heads.h"
#include "cuda/tensor_cores.h"

/// The two products of the attention family, for one warp: 16 rows of the left operand against a
/// tile in shared memory. Results lie in registers as the tensor cores leave them: with g = lane /
/// 4 and t = lane % 4, at[i] of a lane holds
///   (g, 8 i + 2 t), (g, 8 i + 2 t + 1), (g + 8, 8 i + 2 t), (g + 8, 8 i + 2 t + 1).
///
///   dots   c (16 x 8 n) += a b^T: rows of a and of b in shared memory, `width` entries each
///   mix    c (16 x 8 n) += p b:   p (16 x 8 m) in registers as above, b [8 m, 8 n] in shared
///   memory
///
/// Rows of a tile are padded by 16 bytes, which spreads the eight rows that a fragment touches over
/// all banks.
namespace longhand::cuda {

__device__ __forceinline__ int lane_row() { return lane_index() / 4; }
__device__ __forceinline__ int lane_column() { return lane_index() % 4; }

/// f32 products, one by one.
struct ExactProduct {
  using Element = float;
  static constexpr int stride(int width) { return width + 4; }
  __device__ __forceinline__ static Element element(float x) { return x; }

  template <int width, int n>
  __device__ __forceinline__ static void dots(float (&c)[n][4], const Element* a,
                                              const Element* b) {
    const Element* const rows = a + lane_row() * stride(width);
    const Element* const columns = b + 2 * lane_column() * stride(width);
#pragma unroll 1
    for (int k = 0; k < width; k += 4) {
      const Pack<float> x[2] = {load_pack(rows + k), load_pack(rows + 8 * stride(width) + k)};
#pragma unroll
      for (int i = 0; i < n; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const Pack<float> y = load_pack(columns + (8 * i + j) * stride(width) + k);
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            c[i][j] += x[0].at[e] * y.at[e];
            c[i][2 + j] += x[1].at[e] * y.at[e];
          }
        }
      }
    }
  }

  template <int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[n][4], const float (&p)[m][4],
                                             const Element* b) {
    constexpr int step = stride(8 * n);
    const int quad = lane_row() * 4;
#pragma unroll
    for (int i = 0; i < m; ++i) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        const float p0 = __shfl_sync(full_warp, p[i][k % 2], quad + k / 2);
        const float p1 = __shfl_sync(full_warp, p[i][2 + k % 2], quad + k / 2);
        const Element* const row = b + (8 * i + k) * step + 2 * lane_column();
#pragma unroll
        for (int j = 0; j < n; ++j) {
          const Pair<float> y = *reinterpret_cast<const Pair<float>*>(row + 8 * j);
          c[j][0] += p0 * y.first;
          c[j][1] += p0 * y.second;
          c[j][2] += p1 * y.first;
          c[j][3] += p1 * y.second;
        }
      }
    }
  }
};

/// Operands of 10 bits and the sign, f32's exponent; tiles hold them rounded.
struct Tf32Product {
  using Element = float;
  static constexpr int stride(int width) { return width + 4; }
  __device__ __forceinline__ static Element element(float x) { return __uint_as_float(to_tf32(x)); }

  template <int width, int n>
  __device__ __forceinline__ static void dots(float (&c)[n][4], const Element* a,
                                              const Element* b) {
    const int g = lane_row(), t = lane_column();
    const Element* const rows = a + g * stride(width) + t;
    const Element* const columns = b + g * stride(width) + t;
#pragma unroll
    for (int k = 0; k < width; k += 8) {
      const unsigned x[4] = {bits(rows + k), bits(rows + 8 * stride(width) + k), bits(rows + k + 4),
                             bits(rows + 8 * stride(width) + k + 4)};
#pragma unroll
      for (int i = 0; i < n; ++i) {
        const Element* const y = columns + 8 * i * stride(width) + k;
        mma_tf32_16x8x8(c[i], x, bits(y), bits(y + 4));
      }
    }
  }

  /// The order of a sum is free: column t of the left fragment is key 2 t, column t + 4 key 2 t +
  /// 1, which is how p lies already.
  template <int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[n][4], const float (&p)[m][4],
                                             const Element* b) {
    constexpr int step = stride(8 * n);
    const Element* const at = b + 2 * lane_column() * step + lane_row();
#pragma unroll
    for (int i = 0; i < m; ++i) {
      const unsigned x[4] = {to_tf32(p[i][0]), to_tf32(p[i][2]), to_tf32(p[i][1]),
                             to_tf32(p[i][3])};
#pragma unroll
      for (int j = 0; j < n; ++j) {
        const Element* const y = at + 8 * i * step + 8 * j;
        mma_tf32_16x8x8(c[j], x, bits(y), bits(y + step));
      }
    }
  }

 private:
  __device__ __forceinline__ static unsigned bits(const float* at) { return __float_as_uint(*at); }
};

/// Operands rounded to bf16.
struct Bf16Product {
  using Element = bf16;
  static constexpr int stride(int width) { return width + 8; }
  __device__ __forceinline__ static Element element(float x) { return from_float<bf16>(x); }

  template <int width, int n>
  __device__ __forceinline__ static void dots(float (&c)[n][4], const Element* a,
                                              const Element* b) {
    const int lane = lane_index(), matrix = lane / 8, row = lane % 8;
    const Element* const rows = a + (matrix % 2 * 8 + row) * stride(width) + matrix / 2 * 8;
    const Element* const columns = b + (matrix / 2 * 8 + row) * stride(width) + matrix % 2 * 8;
#pragma unroll
    for (int k = 0; k < width; k += 16) {
      unsigned x[4];
      load_matrices(x, rows + k);
#pragma unroll
      for (int i = 0; i < n; i += 2) {
        unsigned y[4];
        load_matrices(y, columns + 8 * i * stride(width) + k);
        mma_bf16_16x8x16(c[i], x, y[0], y[1]);
        mma_bf16_16x8x16(c[i + 1], x, y[2], y[3]);
      }
    }
  }

  template <int m, int n>
  __device__ __forceinline__ static void mix(float (&c)[n][4], const float (&p)[m][4],
                                             const Element* b) {
    constexpr int step = stride(8 * n);
    const int lane = lane_index(), matrix = lane / 8, row = lane % 8;
    const Element* const at = b + (matrix % 2 * 8 + row) * step + matrix / 2 * 8;
#pragma unroll
    for (int i = 0; i < m; i += 2) {
      const unsigned x[4] = {pack_bf16(p[i][0], p[i][1]), pack_bf16(p[i][2], p[i][3]),
                             pack_bf16(p[i + 1][0], p[i + 1][1]),
                             pack_bf16(p[i + 1][2], p[i + 1][3])};
#pragma unroll
      for (int j = 0; j < n; j += 2) {
        unsigned y[4];
        load_matrices_transposed(y, at + 8 * i * step + 8 * j);
        mma_bf16_16x8x16(c[j], x, y[0], y[1]);
        mma_bf16_16x8x16(c[j + 1], x, y[2], y[3]);
      }
    }
  }
};

}  // namespace longhand::cuda
