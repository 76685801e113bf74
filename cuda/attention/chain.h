#pragma once

#include "cuda/attention/scores.h"

/// Blocks that wait for one another. A chain's tiles depend on the tiles before them; blocks take
/// tiles by ticket, in an order in which what a tile waits for has a smaller ticket. Whoever waits
/// thus waits for a block that runs already, and the sums of a tile have one order whatever the
/// speed of the others: the bits do not depend on who came first.
namespace longhand::cuda {

/// Words of progress: the next ticket, then one for each slot, head and slice, 0 until it is done
/// or, of tiles that are done in steps, has done its first.
inline std::int64_t progress_words(std::int64_t slots, std::int64_t heads, std::int64_t slices) {
  return 1 + slots * heads * slices;
}

/// The next ticket, the same for all threads of the block.
__device__ __forceinline__ std::int64_t take_ticket(std::int32_t* progress) {
  __shared__ std::int32_t ticket;
  __syncthreads();
  if (threadIdx.x == 0) ticket = atomicAdd(progress, 1);
  __syncthreads();
  return ticket;
}

/// Until publish(done, steps) of another block, or a later step. What was written before it can be
/// read after.
__device__ __forceinline__ void wait_for(const std::int32_t* done, int steps = 1) {
  if (threadIdx.x == 0) {
    while (*static_cast<const volatile std::int32_t*>(done) < steps) {
    }
    __threadfence();
  }
  __syncthreads();
}

__device__ __forceinline__ void publish(std::int32_t* done, int steps = 1) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *static_cast<volatile std::int32_t*>(done) = steps;
}

/// How many tiles the longest of so many segments has; the same for all threads.
__device__ __forceinline__ int most_tiles(const std::int32_t* lengths, int count) {
  __shared__ int warps[attention_threads / 32];
  int most = 0;
  for (int s = static_cast<int>(threadIdx.x); s < count; s += attention_threads) {
    most = max(most, lengths[s]);
  }
  for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(full_warp, most, step));
  if (lane_index() == 0) warps[warp_index()] = most;
  __syncthreads();
  for (const int of_warp : warps) most = max(most, of_warp);
  return (most + tile_rows - 1) / tile_rows;
}

/// A chain's tile: tickets go through the first tiles of all segments, heads and slices, then the
/// second ones, so that as many chains as there are run side by side.
struct ChainTile {
  std::int32_t segment, rank, head, slice;
};
__device__ __forceinline__ ChainTile chain_tile(std::int64_t ticket, int segments, int heads,
                                                int slices) {
  const std::int64_t chains = std::int64_t{segments} * heads * slices;
  const auto chain = static_cast<std::int32_t>(ticket % chains);
  return {chain / (heads * slices), static_cast<std::int32_t>(ticket / chains),
          chain / slices % heads, chain % slices};
}

/// The substitution on a diagonal tile works on f32 rows in shared memory, a column a thread:
/// row stride of the sums, and of the links, where links[s][r] is what row r takes of row s.
template <int slice>
constexpr int sums_stride = slice + 4;
inline constexpr int links_stride = tile_rows + 4;

template <int slice>
constexpr std::size_t substitution_bytes = sizeof(float) * tile_rows*(sums_stride<slice> +
                                                                      links_stride + 1);

/// y_r += sum_(s < r) links[s][r] y_s, row by row; each thread a column.
template <int slice>
__device__ void substitute(float* sums, const float* links, int rows) {
  const int column = static_cast<int>(threadIdx.x);
  if (column >= slice) return;
  for (int panel = 0; panel < rows; panel += 16) {
    float y[16];
#pragma unroll
    for (int r = 0; r < 16; ++r) y[r] = sums[(panel + r) * sums_stride<slice> + column];
    for (int s = 0; s < panel; ++s) {
      const float done = sums[s * sums_stride<slice> + column];
      const float* const link = links + s * links_stride + panel;
#pragma unroll
      for (int r = 0; r < 16; ++r) y[r] += link[r] * done;
    }
#pragma unroll
    for (int s = 0; s < 15; ++s) {
      const float* const link = links + (panel + s) * links_stride + panel;
#pragma unroll
      for (int r = s + 1; r < 16; ++r) y[r] += link[r] * y[s];
    }
#pragma unroll
    for (int r = 0; r < 16; ++r) sums[(panel + r) * sums_stride<slice> + column] = y[r];
  }
}

}  // namespace longhand::cuda
