#pragma once

#include "cuda/attention/run.h"

/// Attention with heads wider than 128 columns. A thread block computes up to 768 columns of the
/// result for 32 rows, its own rows. These are queries in the forward pass and in the gradients of
/// the queries, and keys in the gradients of keys and values. The block processes 64 other rows at
/// a time.
///
/// The block has eight warps: two bands of 16 own rows, and four warps per band. First, each warp
/// computes the products of its own rows with a quarter of the other rows, summed over all slices
/// of the columns. Then the warps of a band exchange these products, or the weights computed from
/// them, through shared memory. Finally, each warp multiplies the weights of all 64 other rows by a
/// quarter of the columns of each slice of the rows that are summed: values for the output, keys
/// for dq, queries for dk, and dy for dv. The products are thus computed only once for all 768
/// columns of the result.
///
/// The slices are loaded one after another into two buffers. While one slice is used, the next one
/// is loaded.
namespace longhand::cuda {

inline constexpr int wide_threads = 256;
inline constexpr int wide_rows = 32;      // own rows of a block
inline constexpr int wide_step = 64;      // other rows that a block processes at a time
inline constexpr int wide_columns = 768;  // maximum number of columns of the result per block

/// True if heads with `width` columns of queries and `v_width` columns of values are computed as
/// this file describes.
inline bool is_wide(std::int64_t width, std::int64_t v_width) {
  return std::max(width, v_width) > 128;
}
/// Number of blocks that compute the columns of a result of `width` columns.
inline int wide_parts(std::int64_t width) { return slices(width, wide_columns); }

__device__ __forceinline__ int wide_band() { return warp_index() / 4; }
__device__ __forceinline__ int wide_quarter() { return warp_index() % 4; }

template <class Product>
struct WideSlice {
  static constexpr int value = 256 / static_cast<int>(sizeof(typename Product::Element));
};

/// Rows of one head, which are loaded into shared memory one slice at a time. `first` is an int to
/// save a register: 2^31 rows of such a wide head exceed the memory of every device.
struct HeadRows {
  const HeadsView& x;
  int first, count, head;

  template <class Product, int slice, int rows>
  __device__ __forceinline__ void load(typename Product::Element* tile, int column) const {
    stage<Product, slice, rows, wide_threads>(tile, x, first, count, head, column);
  }
  /// Rounds the entries that this thread copied, if the products require it (settle()).
  template <class Product, int slice, int rows>
  __device__ __forceinline__ void round(typename Product::Element* tile) const {
    settle<Product, slice, rows, wide_threads>(tile, x);
  }
};

/// The tiles in the shared memory of a block, and the products that the block computes from them.
/// OwnRows and Rows are HeadRows, or another struct with the functions load() and round(). During
/// their last slice, multiply() and mix() call next(), which starts to load the first slice of the
/// next product, if there is one.
template <class Product>
struct WideTiles {
  using Element = typename Product::Element;
  static constexpr int slice = WideSlice<Product>::value, stride = Product::stride(slice);
  static constexpr int slices = wide_columns / slice;  // maximum number of slices of the result
  static constexpr int n = slice / 32;  // a quarter of the columns of a slice, in groups of 8
  static constexpr int weights_stride = wide_step + 8;
  static constexpr std::size_t bytes = sizeof(Element) * 2 * (wide_step + wide_rows) * stride +
                                       sizeof(float) * wide_rows * weights_stride;
  /// Products of the warp's own rows with a quarter of the other rows.
  using Products = float[2][4];
  /// Weights of the warp's own rows with all other rows.
  using Weights = float[1][wide_step / 8][4];
  /// The warp's quarter of the columns of each slice of the result.
  using Result = float[1][slices * n][4];

  // two tiles of other rows, two tiles of own rows, and the exchanged products
  Element* const tiles = shared_memory<Element>();
  int turn = 0;  // index of the buffer that is loaded next

  /// The first column of group c of a Result. `part` is the block's part of the result's columns.
  __device__ __forceinline__ static int column(int part, int c) {
    return part * wide_columns + c / n * slice + 8 * (n * wide_quarter() + c % n);
  }

  /// Starts to load slice i of own and other rows, or of other rows only.
  template <class OwnRows, class Rows>
  __device__ __forceinline__ void bring(const OwnRows& own, const Rows& others, int i) const {
    own.template load<Product, slice, wide_rows>(own_tile(), i * slice);
    bring(others, i);
  }
  template <class Rows>
  __device__ __forceinline__ void bring(const Rows& others, int i) const {
    others.template load<Product, slice, wide_step>(other_tile(), i * slice);
  }

  /// Adds the products of this warp's own rows with its quarter of the other rows to s, if `used`
  /// is set. The caller has already called bring(own, others, 0).
  template <class OwnRows, class Rows, class Next>
  __device__ __forceinline__ void multiply(Products& s, const OwnRows& own, const Rows& others,
                                           int count, bool used, const Next& next) {
    for (int i = 0; i < count; ++i) {
      Element *const a = own_tile(), *const b = other_tile();
      wait_for_copies<0>();
      own.template round<Product, slice, wide_rows>(a);
      others.template round<Product, slice, wide_step>(b);
      // After this barrier, all warps have used the previous slice, so its buffer is free.
      __syncthreads();
      turn = 1 - turn;
      if (i + 1 < count) {
        bring(own, others, i + 1);
      } else {
        next();
      }
      commit_copies();
      if (used) {
        dots<Product, slice>(s, a + 16 * stride * wide_band(), b + 16 * stride * wide_quarter());
      }
    }
  }

  /// Sets p to the products, or weights, that the four warps of the band pass in s. At least one
  /// other barrier must separate two calls.
  __device__ __forceinline__ void exchange(Weights& p, const Products& s) const {
    auto* const weights = reinterpret_cast<float*>(tiles + 2 * (wide_step + wide_rows) * stride) +
                          (16 * wide_band() + lane_row()) * weights_stride + 2 * lane_column();
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        *pair(weights + 8 * i * weights_stride + 8 * (2 * wide_quarter() + c)) = {s[c][2 * i],
                                                                                  s[c][2 * i + 1]};
      }
    }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < wide_step / 8; ++c) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const Pair<float> two = *pair(weights + 8 * i * weights_stride + 8 * c);
        p[0][c][2 * i] = two.first;
        p[0][c][2 * i + 1] = two.second;
      }
    }
  }

  /// Adds the product of p and the slices of `others` to this warp's columns of the result, if
  /// `used` is set. The slices are first, first + 1, ... of a head with `count` slices. The caller
  /// has already called bring(others, first).
  template <class Rows, class Next>
  __device__ __forceinline__ void mix(Result& out, const Weights& p, const Rows& others, int first,
                                      int count, bool used, const Next& next) {
#pragma unroll
    for (int i = 0; i < slices; ++i) {
      if (first + i >= count) break;
      Element* const b = other_tile();
      wait_for_copies<0>();
      others.template round<Product, slice, wide_step>(b);
      __syncthreads();
      turn = 1 - turn;
      if (i + 1 < slices && first + i + 1 < count) {
        bring(others, first + i + 1);
      } else {
        next();
      }
      commit_copies();
      if (used) {
        Product::template mix<slice>(reinterpret_cast<float(&)[1][n][4]>(out[0][i * n]), p,
                                     b + 8 * n * wide_quarter());
      }
    }
  }

  /// Stores the block's columns of the result, each row multiplied by a factor. Row 0 of the block
  /// is `row` of y. The block has `count` rows.
  __device__ __forceinline__ void store(const HeadsView& y, std::int64_t row, int count, int head,
                                        int part, const Result& out,
                                        const float (&factors)[1][2]) const {
    // The results overwrite the tiles, which other warps may still read.
    __syncthreads();
    Element* const rows = tiles + 16 * Product::stride(8 * n) * warp_index();
#pragma unroll
    for (int i = 0; i < slices; ++i) {
      store_rows<Product>(rows, y, row + 16 * wide_band(), count - 16 * wide_band(), head,
                          column(part, i * n),
                          reinterpret_cast<const float(&)[1][n][4]>(out[0][i * n]), factors);
    }
  }

 private:
  __device__ __forceinline__ Element* other_tile() const {
    return tiles + turn * wide_step * stride;
  }
  __device__ __forceinline__ Element* own_tile() const {
    return tiles + (2 * wide_step + turn * wide_rows) * stride;
  }
  __device__ __forceinline__ static Pair<float>* pair(float* at) {
    return reinterpret_cast<Pair<float>*>(at);
  }
};

}  // namespace longhand::cuda
