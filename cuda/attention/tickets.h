#pragma once

#include "cuda/attention/scores.h"

/// Functions for kernels in which blocks wait for one another because a tile of rows depends on the
/// tiles before it. A block draws a ticket, which is the number of its next tile. Every tile has a
/// larger number than the tiles on which it depends, so a block waits only for blocks that are
/// already running. The sums of a tile have a fixed order, independent of the speed of other
/// blocks, so results are bitwise reproducible.
namespace longhand::cuda {

/// Number of words in the `progress` array of a kernel. The first word is the next ticket. Each
/// other word belongs to one slot, head and slice. A slot is a place for one tile and may be empty
/// (Tile in heads.h). The word counts the finished steps of the slot's tile. A tile that is not
/// divided into steps counts as one step.
inline std::int64_t progress_words(std::int64_t slots, std::int64_t heads, std::int64_t slices) {
  return 1 + slots * heads * slices;
}

/// Draws the next ticket and returns it to all threads of the block.
__device__ __forceinline__ std::int64_t take_ticket(std::int32_t* progress) {
  __shared__ std::int32_t ticket;
  __syncthreads();
  if (threadIdx.x == 0) ticket = atomicAdd(progress, 1);
  __syncthreads();
  return ticket;
}

/// Waits until another block has called publish(done, steps), or published a later step of the same
/// tile. Everything that the other block wrote before that call is then visible.
__device__ __forceinline__ void wait_for(const std::int32_t* done, int steps = 1) {
  if (threadIdx.x == 0) {
    while (*static_cast<const volatile std::int32_t*>(done) < steps) let_others_run();
    __threadfence();
  }
  __syncthreads();
}

/// Reports to other blocks that `steps` steps of a tile are finished. The barrier orders all writes
/// of this block before the fence of thread 0, and the fence orders them before the write to
/// `done`. If each thread executed a fence before the barrier instead, the fence would order only
/// the writes of its own thread.
__device__ __forceinline__ void publish(std::int32_t* done, int steps = 1) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  *static_cast<volatile std::int32_t*>(done) = steps;
}

/// The number of tiles of 64 rows in the longest of `count` segments. All threads receive the
/// result.
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

/// A tile of one segment, head and slice. `rank` counts the tiles of a segment in the order of
/// their tickets. The first tickets belong to the tiles of rank 0 of all segments, heads and
/// slices, the next tickets to the tiles of rank 1, and so on. All segments and heads thus advance
/// in parallel.
struct TicketTile {
  std::int32_t segment, rank, head, slice;
};
__device__ __forceinline__ TicketTile tile_of_ticket(std::int64_t ticket, int segments, int heads,
                                                     int slices) {
  const std::int64_t tracks = std::int64_t{segments} * heads * slices;
  const auto track = static_cast<std::int32_t>(ticket % tracks);
  return {track / (heads * slices), static_cast<std::int32_t>(ticket / tracks),
          track / slices % heads, track % slices};
}

/// ChaCAL solves a triangular system for the rows of one tile by substitution. Two f32 matrices in
/// shared memory describe the system, `sums` and `links`: for s < r, row s of `sums`, multiplied by
/// links[s][r], is added to row r of `sums`. sums_stride and links_stride are the row strides of
/// these matrices.
template <int slice>
constexpr int sums_stride = slice + 4;
inline constexpr int links_stride = tile_rows + 4;

template <int slice>
constexpr std::size_t substitution_bytes = sizeof(float) * tile_rows*(sums_stride<slice> +
                                                                      links_stride + 1);

/// Computes y_r += sum_(s < r) links[s][r] y_s from the first row to the last, where y_r is row r
/// of `sums`. Each thread handles one column.
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
