#pragma once

#include "core/contract/heads.h"
#include "cuda/tensor_cores.h"

/// Heads and segments in the form in which they are passed to the attention kernels.
namespace longhand::cuda {

/// Two neighbouring entries, read or written by one instruction.
template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T first, second;
};

/// A device matrix whose rows contain several heads side by side. Entry c of head h of row i is
/// at[i columns + h width + c].
struct HeadsView {
  void* at = nullptr;
  std::int64_t columns = 0;
  std::int32_t width = 0;
  bool half = false;  // true if the entries are bf16, false if they are f32
  // true if 16-byte accesses are possible: within each head's row, every group of eight entries
  // begins at a multiple of 16 bytes
  bool aligned = false;
  // For a matrix that a kernel writes: true if new values are added to the entries of the matrix,
  // false if they replace the entries.
  bool add = false;

  explicit __host__ __device__ operator bool() const { return at != nullptr; }
  /// True if the entries have the type T and can be copied 16 bytes at a time.
  template <class T>
  __device__ bool lies_as() const {
    return aligned && half == std::is_same_v<T, bf16>;
  }
};

HeadsView view(const Heads& x);
HeadsView view(const HeadsTarget& x);

/// The rows of one segment in the tensors of queries and keys; see core/contract/heads.h.
struct SegmentView {
  // query: the segment's first row in the tensor of queries; key: its first row in the tensor of
  // keys
  std::int64_t query = 0, key = 0;
  std::int32_t queries = 0, keys = 0;
  __device__ int offset() const { return keys - queries; }
};

struct SegmentsView {
  const std::int32_t *query_begin, *query_length, *key_begin, *key_length;
  std::int32_t count = 0;
  __device__ SegmentView operator[](int s) const {
    return {query_begin[s], key_begin[s], query_length[s], key_length[s]};
  }
};
SegmentsView view(const Segments& queries, const Segments& keys);

/// Each segment is divided into tiles of `rows` rows, so no tile crosses a segment boundary. A slot
/// is a place for one tile in the launch grid. Segment s, which begins at row b and has n rows,
/// owns the slots from floor(b / rows) + s on. The next segment begins at row b + n, so segment s
/// owns floor((b + n) / rows) - floor(b / rows) + 1 slots. This is at least n / rows rounded up,
/// the number of its tiles. A kernel can therefore find its tile without a table. Some slots have
/// no tile.
struct Tile {
  std::int32_t segment = 0, first = 0;  // first: index of the tile's first row within the segment
};
inline std::int64_t tile_slots(std::int64_t rows_in_all, std::int64_t segments, int rows) {
  return rows_in_all / rows + segments;
}

/// Finds the tile of a slot (a place for one tile in the launch grid; see Tile). The tile's segment
/// is the last segment whose slots begin at or before `slot`. If the slot has no tile, the member
/// `first` of the result is beyond the segment's last row. A warp searches 32 segments at a time.
__device__ __forceinline__ Tile tile_at(const std::int32_t* begins, int count, int rows,
                                        std::int64_t slot) {
  const int lane = lane_index();
  const auto first_slot = [&](int s) { return std::int64_t{begins[s] / rows} + s; };
  int low = 0, high = count;
  while (high - low > 1) {
    const int step = (high - low + 31) / 32, candidate = low + lane * step;
    const bool begun = candidate < high && first_slot(candidate) <= slot;
    const int before = __popc(__ballot_sync(full_warp, begun));
    low += (before - 1) * step;
    high = high < low + step ? high : low + step;
  }
  return {low, static_cast<std::int32_t>((slot - first_slot(low)) * rows)};
}

/// Sets out[i] = x(row, head, column + i) for i < 8, or 0 beyond the head's width. `column` is a
/// multiple of 8.
__device__ __forceinline__ void load_eight(float (&out)[8], const HeadsView& x, std::int64_t row,
                                           int head, int column) {
  const std::int64_t at = row * x.columns + std::int64_t{head} * x.width + column;
  if (x.aligned && column < x.width) {
    if (x.half) {
      const Pack<bf16> eight = load_pack(static_cast<const bf16*>(x.at) + at);
#pragma unroll
      for (int i = 0; i < 8; ++i) out[i] = to_float(eight.at[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const Pack<float> four = load_pack(static_cast<const float*>(x.at) + at + i);
#pragma unroll
        for (int j = 0; j < 4; ++j) out[i + j] = four.at[j];
      }
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    out[i] = 0;
    if (column + i >= x.width) continue;
    out[i] = x.half ? to_float(static_cast<const bf16*>(x.at)[at + i])
                    : static_cast<const float*>(x.at)[at + i];
  }
}

/// The dot product of head h of row i of x and head g of row j of y, returned to all lanes of the
/// warp. The function `rounded` is first applied to each entry of x.
template <class Rounded>
__device__ __forceinline__ float warp_dot(const HeadsView& x, std::int64_t i, int h,
                                          const HeadsView& y, std::int64_t j, int g,
                                          const Rounded& rounded) {
  float sum = 0;
  for (int c = 8 * lane_index(); c < x.width; c += 8 * warp_size) {
    float a[8], b[8];
    load_eight(a, x, i, h, c);
    load_eight(b, y, j, g, c);
#pragma unroll
    for (int e = 0; e < 8; ++e) sum += rounded(a[e]) * b[e];
  }
  return warp_sum(sum);
}
__device__ __forceinline__ float warp_dot(const HeadsView& x, std::int64_t i, int h,
                                          const HeadsView& y, std::int64_t j, int g) {
  return warp_dot(x, i, h, y, j, g, [](float entry) { return entry; });
}

__device__ __forceinline__ float load_one(const HeadsView& x, std::int64_t row, int head,
                                          int column) {
  const std::int64_t at = row * x.columns + std::int64_t{head} * x.width + column;
  return x.half ? to_float(static_cast<const bf16*>(x.at)[at])
                : static_cast<const float*>(x.at)[at];
}

__device__ __forceinline__ void store_one(const HeadsView& y, std::int64_t row, int head,
                                          int column, float value) {
  const std::int64_t at = row * y.columns + std::int64_t{head} * y.width + column;
  if (y.half) {
    bf16* const to = static_cast<bf16*>(y.at) + at;
    *to = from_float<bf16>(y.add ? to_float(*to) + value : value);
  } else {
    float* const to = static_cast<float*>(y.at) + at;
    *to = y.add ? *to + value : value;
  }
}

/// Stores x in the entries column .. column + 7 of a head's row. `column` is a multiple of 8.
/// Entries beyond the head's width are dropped.
__device__ __forceinline__ void store_eight(const HeadsView& y, std::int64_t row, int head,
                                            int column, const float (&x)[8]) {
  if (!y.aligned || y.add) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (column + i < y.width) store_one(y, row, head, column + i, x[i]);
    }
    return;
  }
  if (column >= y.width) return;
  const std::int64_t at = row * y.columns + std::int64_t{head} * y.width + column;
  if (y.half) {
    Pack<bf16> eight;
#pragma unroll
    for (int i = 0; i < 8; ++i) eight.at[i] = from_float<bf16>(x[i]);
    store_pack(static_cast<bf16*>(y.at) + at, eight);
  } else {
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      store_pack(static_cast<float*>(y.at) + at + i,
                 Pack<float>{{x[i], x[i + 1], x[i + 2], x[i + 3]}});
    }
  }
}

/// Stores a and b in the entries column and column + 1 of a head's row. `column` is even. Entries
/// beyond the head's width are dropped.
__device__ __forceinline__ void store_pair(const HeadsView& y, std::int64_t row, int head,
                                           int column, float a, float b) {
  if (!y.aligned || y.add) {
    if (column < y.width) store_one(y, row, head, column, a);
    if (column + 1 < y.width) store_one(y, row, head, column + 1, b);
    return;
  }
  if (column >= y.width) return;
  const std::int64_t at = row * y.columns + std::int64_t{head} * y.width + column;
  if (y.half) {
    *reinterpret_cast<unsigned*>(static_cast<bf16*>(y.at) + at) = pack_bf16(a, b);
  } else {
    *reinterpret_cast<Pair<float>*>(static_cast<float*>(y.at) + at) = {a, b};
  }
}

}  // namespace longhand::cuda
