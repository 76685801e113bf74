#include "core/contract/fal.h"

#include <algorithm>

#include "cuda/attention/run.h"

/// First-After-Last: each query selects the last earlier key with a positive score
/// (core/contract/fal.h). In the forward pass a block has 32 queries of one head, eight per warp.
/// It processes the keys from the last to the first, 32 at a time, with one key per lane. For each
/// query, one ballot finds the last of the 32 keys with a positive score. The block stops when all
/// its queries have selected a key, or at the first key of the segment.
///
/// The first kernel of the backward pass computes dq, the score of each query with its selected
/// key, and the gradient of this score, with one warp per query. In the second kernel, a block
/// computes dk and dv of 32 keys. It scans the selections of all later queries and lists those that
/// concern its keys, in order. Each warp sums the terms of its own keys.
///
/// Products and sums are f32 in every math mode.
namespace longhand::cuda {
namespace {

constexpr int fal_rows = 32, fal_threads = 128, fal_warps = fal_threads / warp_size;
constexpr int fal_slice = 64, fal_stride = fal_slice + 4;
constexpr int queries_of_warp = fal_rows / fal_warps;

struct FalTask {
  HeadsView q = {}, k = {}, v = {}, y = {}, dy = {}, dq = {}, dk = {}, dv = {};
  SegmentsView segments;
  std::int32_t heads = 1, group = 1;
  std::int32_t* match = nullptr;
  // backward pass: the score of each query with the key that it selected, and the gradient of this
  // score, [query tokens, heads, 2]
  float* pairs = nullptr;
};

/// Copies rows of one head of x to shared memory: tile[r][c] = x(row + r, head, first + c) for
/// r < count. The other rows of the tile become 0.
__device__ __forceinline__ void stage_rows(float* tile, const HeadsView& x, std::int64_t row,
                                           int count, int head, int first) {
  constexpr int pieces = fal_slice / 8;
  for (int i = static_cast<int>(threadIdx.x); i < fal_rows * pieces; i += fal_threads) {
    const int r = i / pieces, c = i % pieces * 8;
    float eight[8] = {};
    if (r < count) load_eight(eight, x, row + r, head, first + c);
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      store_pack(tile + r * fal_stride + c + j,
                 Pack<float>{{eight[j], eight[j + 1], eight[j + 2], eight[j + 3]}});
    }
  }
}

__global__ void __launch_bounds__(fal_threads, blocks_on(80, 4) + blocks_on(120, 3))
    fal_kernel(FalTask task) {
  alignas(16) __shared__ float queries[fal_rows * fal_stride], keys[fal_rows * fal_stride];
  const int head = static_cast<int>(blockIdx.y), key_head = head / task.group;
  const Tile tile = tile_at(task.segments.query_begin, task.segments.count, fal_rows, blockIdx.x);
  const SegmentView at = task.segments[tile.segment];
  if (tile.first >= at.queries) return;
  const int rows = min(fal_rows, at.queries - tile.first);
  const std::int64_t first_row = at.query + tile.first;
  const int own = warp_index() * queries_of_warp;    // index of the warp's first query in the tile
  const int start = at.offset() + tile.first + own;  // position of the warp's first query
  const int width = task.q.width, lane = lane_index();

  int match[queries_of_warp];
  float found[queries_of_warp];
  unsigned open = 0;  // bit mask of this warp's queries that have no match yet
#pragma unroll
  for (int i = 0; i < queries_of_warp; ++i) {
    match[i] = -1;
    found[i] = 0;
    if (own + i < rows && start + i > 0) open |= 1u << i;
  }
  if (width <= fal_slice) stage_rows(queries, task.q, first_row, rows, head, 0);

  // A query can only match a key before its own position. So the search begins at the key before
  // the tile's last position.
  for (int block = (at.offset() + tile.first + rows - 2) / fal_rows; __syncthreads_or(open != 0);
       --block) {
    const int begin = block * fal_rows;
    const bool looks = open != 0 && begin < start + queries_of_warp - 1;
    float scores[queries_of_warp] = {};
    for (int first = 0; first < width; first += fal_slice) {
      if (first > 0) __syncthreads();
      if (width > fal_slice) stage_rows(queries, task.q, first_row, rows, head, first);
      stage_rows(keys, task.k, at.key + begin, min(fal_rows, at.keys - begin), key_head, first);
      __syncthreads();
      if (!looks) continue;
      const float* const key = keys + lane * fal_stride;
      for (int c = 0; c < min(fal_slice, width - first); c += 4) {
        const Pack<float> x = load_pack(key + c);
#pragma unroll
        for (int i = 0; i < queries_of_warp; ++i) {
          const Pack<float> y = load_pack(queries + (own + i) * fal_stride + c);
#pragma unroll
          for (int e = 0; e < 4; ++e) scores[i] += y.at[e] * x.at[e];
        }
      }
    }
    if (!looks) continue;
#pragma unroll
    for (int i = 0; i < queries_of_warp; ++i) {
      if ((open >> i & 1) == 0) continue;
      const unsigned hits = __ballot_sync(full_warp, scores[i] > 0 && begin + lane < start + i);
      if (hits != 0) {
        const int last = 31 - __clz(static_cast<int>(hits));
        match[i] = begin + last;
        found[i] = __shfl_sync(full_warp, scores[i], last);
      }
      if (hits != 0 || begin == 0) open &= ~(1u << i);
    }
  }

#pragma unroll
  for (int i = 0; i < queries_of_warp; ++i) {
    if (own + i >= rows) continue;
    const std::int64_t row = first_row + own + i;
    if (lane == 0) task.match[row * task.heads + head] = match[i];
    for (int c = 8 * lane; c < task.v.width; c += 8 * warp_size) {
      float value[8] = {};
      if (match[i] >= 0) load_eight(value, task.v, at.key + match[i] + 1, key_head, c);
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        store_pair(task.y, row, head, c + j, found[i] * value[j], found[i] * value[j + 1]);
      }
    }
  }
}

/// For each query that selected a key m, computes
///   score = q . k_m;  dscore = dy . v_(m+1), the gradient of the score;  dq = dscore k_m.
/// If a query selected no key (m = -1), all three are 0.
__global__ void __launch_bounds__(fal_threads) fal_query_gradients(FalTask task) {
  const int head = static_cast<int>(blockIdx.y), key_head = head / task.group;
  const Tile tile = tile_at(task.segments.query_begin, task.segments.count, fal_rows, blockIdx.x);
  const SegmentView at = task.segments[tile.segment];
  for (int t = tile.first + warp_index(); t < min(tile.first + fal_rows, at.queries);
       t += fal_warps) {
    const std::int64_t row = at.query + t, entry = row * task.heads + head;
    const int m = task.match[entry];
    float score = 0, dscore = 0;
    if (m >= 0) {
      score = warp_dot(task.q, row, head, task.k, at.key + m, key_head);
      dscore = warp_dot(task.dy, row, head, task.v, at.key + m + 1, key_head);
    }
    if (lane_index() == 0) {
      task.pairs[2 * entry] = score;
      task.pairs[2 * entry + 1] = dscore;
    }
    if (!task.dq) continue;
    for (int c = 8 * lane_index(); c < task.q.width; c += 8 * warp_size) {
      float key[8] = {};
      if (m >= 0) load_eight(key, task.k, at.key + m, key_head, c);
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        store_pair(task.dq, row, head, c + j, dscore * key[j], dscore * key[j + 1]);
      }
    }
  }
}

/// A query that selected a key of the tile, or the key just before the tile.
struct Choice {
  std::int32_t row = 0;   // the query's row in its segment
  std::int32_t slot = 0;  // 1 + the selected key's index in the tile; 0: the key before
};

/// For each query that selected a key m, adds dscore q to dk_m and score dy to dv_(m+1), where
/// score is q . k_m, and dscore is its gradient. A block computes the rows of dk and dv of one tile
/// of keys, and fal_slice of their columns. The terms are added in the order of the query heads
/// that read this key head and, for each head, in the order of the queries. Without the launch
/// bound of 8 blocks per multiprocessor, the compiler would spill registers to make room for 13
/// blocks.
__global__ void __launch_bounds__(fal_threads, 8) fal_key_gradients(FalTask task) {
  __shared__ float sums[2][fal_rows][fal_slice];  // sums[0]: rows of dk; sums[1]: rows of dv
  __shared__ Choice choices[fal_threads];
  __shared__ int counts[fal_warps];
  const int key_head = static_cast<int>(blockIdx.y),
            column = static_cast<int>(blockIdx.z) * fal_slice;
  const Tile tile = tile_at(task.segments.key_begin, task.segments.count, fal_rows, blockIdx.x);
  const SegmentView at = task.segments[tile.segment];
  if (tile.first >= at.keys) return;
  const int rows = min(fal_rows, at.keys - tile.first);
  const int warp = warp_index(), lane = lane_index(), thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < 2 * fal_rows * fal_slice; i += fal_threads) (&sums[0][0][0])[i] = 0;

  // A query that selects key j reads the value of token j + 1, and it selects only keys before its
  // own position. So first_query is the first query that can read a value of this tile.
  const int first_query = max(0, tile.first - at.offset());
  for (int head = key_head * task.group; head < (key_head + 1) * task.group; ++head) {
    for (int begin = first_query; begin < at.queries; begin += fal_threads) {
      const int t = begin + thread;
      int slot = -1;
      if (t < at.queries) {
        const int m = task.match[(at.query + t) * task.heads + head];
        if (m >= 0) slot = m - (tile.first - 1);
      }
      const bool chosen = slot >= 0 && slot <= rows;
      const unsigned mask = __ballot_sync(full_warp, chosen);
      if (lane == 0) counts[warp] = __popc(mask);
      __syncthreads();
      int before = 0, all = 0;
      for (int w = 0; w < fal_warps; ++w) {
        if (w < warp) before += counts[w];
        all += counts[w];
      }
      if (chosen) choices[before + __popc(mask & ((1u << lane) - 1))] = {t, slot};
      __syncthreads();

      // Warp r % fal_warps sums the terms of row r of the tile. A query that selected key s - 1 of
      // the tile (slot s) adds a term to row s - 1 of dk and a term to row s of dv, because FAL
      // reads the value after the selected key.
      for (int i = 0; i < all; ++i) {
        const Choice choice = choices[i];
        const bool value = choice.slot < rows && choice.slot % fal_warps == warp;
        const bool key = choice.slot > 0 && (choice.slot - 1) % fal_warps == warp;
        if (!value && !key) continue;
        const std::int64_t row = at.query + choice.row, entry = row * task.heads + head;
        for (int c = lane; c < fal_slice; c += warp_size) {
          if (value && column + c < task.dy.width) {
            sums[1][choice.slot][c] +=
                task.pairs[2 * entry] * load_one(task.dy, row, head, column + c);
          }
          if (key && column + c < task.q.width) {
            sums[0][choice.slot - 1][c] +=
                task.pairs[2 * entry + 1] * load_one(task.q, row, head, column + c);
          }
        }
      }
      __syncthreads();
    }
  }

  __syncthreads();
  for (int i = thread; i < rows * fal_slice / 2; i += fal_threads) {
    const int r = i / (fal_slice / 2), c = i % (fal_slice / 2) * 2;
    const std::int64_t row = at.key + tile.first + r;
    if (task.dk) {
      store_pair(task.dk, row, key_head, column + c, sums[0][r][c], sums[0][r][c + 1]);
    }
    if (task.dv) {
      store_pair(task.dv, row, key_head, column + c, sums[1][r][c], sums[1][r][c + 1]);
    }
  }
}

}  // namespace

void run(CudaBackend& backend, const Fal& op) {
  launch(backend.stream(), {tile_slots(op.q.data.rows(), op.queries.count(), fal_rows), op.q.heads},
         fal_threads, 0, &fal_kernel,
         FalTask{.q = view(op.q),
                 .k = view(op.k),
                 .v = view(op.v),
                 .y = view(op.y),
                 .segments = view(op.queries, op.keys),
                 .heads = static_cast<std::int32_t>(op.q.heads),
                 .group = static_cast<std::int32_t>(op.q.heads / op.k.heads),
                 .match = op.match.data<std::int32_t>()});
}

void run(CudaBackend& backend, const FalBackward& op) {
  const std::int64_t rows = op.q.data.rows(), count = op.queries.count();
  const Tensor pairs(backend, {rows, op.q.heads, 2}, DType::f32);
  const FalTask task{.q = view(op.q),
                     .k = view(op.k),
                     .v = view(op.v),
                     .dy = view(op.dy),
                     .dq = view(op.dq),
                     .dk = view(op.dk),
                     .dv = view(op.dv),
                     .segments = view(op.queries, op.keys),
                     .heads = static_cast<std::int32_t>(op.q.heads),
                     .group = static_cast<std::int32_t>(op.q.heads / op.k.heads),
                     .match = op.match.data<std::int32_t>(),
                     .pairs = pairs.data<float>()};
  launch(backend.stream(), {tile_slots(rows, count, fal_rows), op.q.heads}, fal_threads, 0,
         &fal_query_gradients, task);
  if (!op.dk && !op.dv) return;
  launch(backend.stream(),
         {tile_slots(op.k.data.rows(), count, fal_rows), op.k.heads,
          slices(std::max(op.q.width, op.v.width), fal_slice)},
         fal_threads, 0, &fal_key_gradients, task);
}

}  // namespace longhand::cuda
