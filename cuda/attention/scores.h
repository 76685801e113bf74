#pragma once

#include "core/contract/scores.h"
#include "cuda/attention/heads.h"
#include "cuda/attention/product.h"

/// Shared code of the softmax kernels: it computes scores, decides which keys a query sees, and
/// loads tiles into shared memory. A block has four warps. Warp w has the rows 16 w .. 16 w + 15 of
/// a tile of 64 rows. Exponentials are computed as powers of two: exp(s) = 2^(s log2 e).
namespace longhand::cuda {

inline constexpr int tile_rows = 64;
inline constexpr int attention_threads = 128;
inline constexpr float log2_of_e = 1.44269504088896340736f;
inline constexpr float ln_of_2 = 0.69314718055994530942f;

struct ScoresView {
  HeadsView q, k;
  SegmentsView segments;
  std::int64_t window = 0;
  float scale = 1;
  // tau: Scores::multiplier, one factor per query. shift: Scores::decay, one term per key. Each may
  // be null.
  const float *tau = nullptr, *shift = nullptr;
  // heads: number of query heads. group: number of query heads per key head.
  std::int32_t heads = 1, group = 1;
  bool causal = true;  // false: every query sees every key of its segment
  // false: a query sees only the keys before its own position (kernels for gradients only)
  bool own_key = true;

  /// Returns tau, by which all scores of the query in this row are multiplied. Returns 1 if the
  /// scores have no multiplier, or if `there` is false, which means that the row does not exist.
  __device__ float tau_of(std::int64_t row, int head, bool there = true) const {
    return tau && there ? tau[row * heads + head] : 1.0f;
  }
  /// The shift (Scores::decay) of a key's row, or 0 if the scores have no shifts.
  __device__ float shift_of(std::int64_t row, int head) const {
    return shift ? shift[row * heads + head] : 0.0f;
  }
  /// Returns c_p - c_j, where c is Scores::decay. This term is added to the score of key j for the
  /// query at position p of the segment.
  __device__ float shift_of(const SegmentView& at, int p, int head, int j) const {
    return shift_of(at.key + p, head) - shift_of(at.key + j, head);
  }
  /// The position of a segment's first query among the keys. A query sees no key after its
  /// position. If queries do not see their own keys, the position is therefore one smaller. Without
  /// a causal mask, it is the number of keys, so that every query sees every key.
  __device__ int offset(const SegmentView& at) const {
    return causal ? at.offset() - (own_key ? 0 : 1) : at.keys;
  }
  /// The first key visible to the query at position p.
  __device__ int first_key(int p) const {
    return window > 0 && p + 1 > window ? static_cast<int>(p + 1 - window) : 0;
  }
  /// The last position whose query sees key j of a segment.
  __device__ int last_position(int j, const SegmentView& at) const {
    return window > 0 && j + window < at.keys ? static_cast<int>(j + window - 1)
                                              : offset(at) + at.queries - 1;
  }
};
ScoresView view(const Scores& scores);

/// True if the query at position p sees key j.
__device__ __forceinline__ bool visible(const ScoresView& s, int p, int j) {
  return j <= p && (s.window == 0 || j > p - s.window);
}

/// Number of slices of `slice` columns in a head of `width` columns.
inline int slices(std::int64_t width, int slice) {
  return static_cast<int>((width + slice - 1) / slice);
}

template <class Product>
__device__ __forceinline__ void store_eight(typename Product::Element* to, const float (&x)[8]) {
  using Element = typename Product::Element;
  constexpr int size = Pack<Element>::size;
#pragma unroll
  for (int i = 0; i < 8; i += size) {
    Pack<Element> pack;
#pragma unroll
    for (int j = 0; j < size; ++j) pack.at[j] = Product::element(x[i + j]);
    store_pack(to + i, pack);
  }
}

/// Loads `slice` columns of one head into shared memory:
///   tile[r][c] = x(row + r, head, first + c)  for r < count.
/// The rows count .. rows - 1 of the tile, and its columns beyond the head's width, become 0. If
/// the entries of x need no conversion, stage() only starts asynchronous copies. The tile is then
/// ready after commit_copies(), wait_for_copies(), settle() and a barrier. `threads` is the block's
/// number of threads.
template <class Product, int slice, int rows, int threads = attention_threads>
__device__ __forceinline__ void stage(typename Product::Element* tile, const HeadsView& x,
                                      std::int64_t row, int count, int head, int first) {
  using Element = typename Product::Element;
  if (x.lies_as<Element>()) {
    constexpr int size = Pack<Element>::size, pieces = slice / size;
    // number of rows that the block copies in one iteration of the loop below
    constexpr int step = threads / pieces;
    static_assert(rows % step == 0);
    const int first_row = static_cast<int>(threadIdx.x) / pieces;
    const int column = static_cast<int>(threadIdx.x) % pieces * size;
    const auto* from = static_cast<const Element*>(x.at) + (row + first_row) * x.columns +
                       std::int64_t{head} * x.width + first + column;
    tile += first_row * Product::stride(slice) + column;
    const int left = first + column < x.width ? count - first_row : 0;
    // Threads of larger blocks have no registers for the addresses of several iterations.
#pragma unroll(threads > attention_threads ? 1 : rows / step)
    for (int i = 0; i < rows; i += step) {
      copy_async(tile + i * Product::stride(slice), from, i < left);
      from += step * x.columns;
    }
    return;
  }
  constexpr int pieces = slice / 8;
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += threads) {
    const int r = i / pieces, c = i % pieces * 8;
    float eight[8] = {};
    if (r < count) load_eight(eight, x, row + r, head, first + c);
    store_eight<Product>(tile + r * Product::stride(slice) + c, eight);
  }
}

/// Rounds the entries of the tile that this thread copied in stage(), if the type of products
/// requires rounded entries. The thread must first wait for its copies.
template <class Product, int slice, int rows, int threads = attention_threads>
__device__ __forceinline__ void settle(typename Product::Element* tile, const HeadsView& x) {
  if constexpr (Product::rounds) {
    // If stage() did not copy the entries asynchronously, it has rounded them already.
    if (!x.lies_as<typename Product::Element>()) return;
    constexpr int size = Pack<typename Product::Element>::size, pieces = slice / size;
    tile += static_cast<int>(threadIdx.x) / pieces * Product::stride(slice) +
            static_cast<int>(threadIdx.x) % pieces * size;
#pragma unroll
    for (int i = 0; i < rows; i += threads / pieces) {
      auto pack = load_pack(tile + i * Product::stride(slice));
#pragma unroll
      for (auto& entry : pack.at) entry = Product::element(entry);
      store_pack(tile + i * Product::stride(slice), pack);
    }
  }
}

/// Stores this warp's rows of a result, each multiplied by a factor:
///   y(row + r, head, first + c) = factor_r out(r, c)  for r < count.
/// The products are first written to `rows`, a buffer of 16 * bands rows in shared memory that no
/// other warp accesses. From there they are stored eight entries at a time.
template <class Product, int bands, int n>
__device__ __forceinline__ void store_rows(typename Product::Element* rows, const HeadsView& y,
                                           std::int64_t row, int count, int head, int first,
                                           const float (&out)[bands][n][4],
                                           const float (&factor)[bands][2]) {
  constexpr int stride =
      Product::stride(8 * n) * static_cast<int>(sizeof(typename Product::Element)) / 4;
  constexpr int passes = sizeof(typename Product::Element) == 2 ? 2 : 1, pieces = n / passes;
  static_assert(n % passes == 0);
  auto* const sums = reinterpret_cast<float*>(rows);
#pragma unroll
  for (int pass = 0; pass < passes; ++pass) {
    __syncwarp();
#pragma unroll
    for (int t = 0; t < bands; ++t) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float* const to = sums + (16 * t + 8 * i + lane_row()) * stride + 2 * lane_column();
#pragma unroll
        for (int c = 0; c < pieces; ++c) {
          const float* const x = out[t][pass * pieces + c] + 2 * i;
          *reinterpret_cast<Pair<float>*>(to + 8 * c) = {x[0] * factor[t][i], x[1] * factor[t][i]};
        }
      }
    }
    __syncwarp();
#pragma unroll 1
    for (int i = lane_index(); i < 16 * bands * pieces; i += warp_size) {
      const int r = i / pieces, c = i % pieces * 8;
      if (r >= count) break;
      float eight[8];
#pragma unroll
      for (int j = 0; j < 8; j += 4) {
        const Pack<float> four = load_pack(sums + r * stride + c + j);
#pragma unroll
        for (int e = 0; e < 4; ++e) eight[j + e] = four.at[e];
      }
      store_eight(y, row + r, head, first + pass * pieces * 8 + c, eight);
    }
  }
}

/// Fills the first `count` rows of the tile with results of compute(), and its other rows with 0.
/// compute(x, r, column) sets x to the eight entries of row r of the tile that begin at column
/// `column` of the head.
template <class Product, int slice, int threads = attention_threads, class Compute>
__device__ __forceinline__ void stage_computed(typename Product::Element* tile, int rows, int count,
                                               int first, const Compute& compute) {
  constexpr int pieces = slice / 8;
  for (int i = static_cast<int>(threadIdx.x); i < rows * pieces; i += threads) {
    const int r = i / pieces, c = i % pieces * 8;
    float x[8] = {};
    if (r < count) compute(x, r, first + c);
    store_eight<Product>(tile + r * Product::stride(slice) + c, x);
  }
}

/// For ChaCAL: replaces eight entries v of the values by (1 - g) v + g y. Here g is gamma of the
/// head, and y contains the corresponding entries of the outputs, or 0 if not yet computed.
__device__ __forceinline__ void add_outputs(float (&v)[8], const float (&y)[8], float g) {
#pragma unroll
  for (int j = 0; j < 8; ++j) v[j] = (1 - g) * v[j] + g * y[j];
}

template <int n>
__device__ __forceinline__ void clear(float (&c)[n][4]) {
#pragma unroll
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) c[i][j] = 0;
  }
}

/// The sum of x over the four lanes of the warp that hold entries of the same row.
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(full_warp, x, 1);
  return x + __shfl_xor_sync(full_warp, x, 2);
}
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(full_warp, x, 1));
  return fmaxf(x, __shfl_xor_sync(full_warp, x, 2));
}

}  // namespace longhand::cuda
