#pragma once

#include <algorithm>

#include "cuda/attention/gradients.h"
#include "cuda/attention/tickets.h"

/// Solves the transposed systems of the backward passes of ChaCAL and DeltaFormer. A block computes
/// 64 rows of the solution W for one query head:
///   ChaCAL       B_j = sum_(i > j) P_ij W_i;  W_j = dy_j + g B_j, where g is gamma.
///   DeltaFormer  B_j = sum_(i > j) P_ij g_i W_i;  W_j = dy_j + B_j, where g_i is the gain of row
///   i.
/// It processes the tiles of later queries, beginning with the last tile, whose rows of W are
/// finished first. The terms of later tiles are added to B by products. The terms of the block's
/// own rows are added by substitution from the last row to the first. For ChaCAL, the block also
/// computes its part of
///   dgamma = sum_j (B_j . y_j - A_j . v_j), where A_j = B_j + P_jj W_j.
/// W is stored in f32. For DeltaFormer, it is also the gradient of v. The other gradients are then
/// computed as for softmax attention, with W instead of dy.
namespace longhand::cuda {

enum class Chain { chacal, deltaformer };

struct ChainTask {
  ScoresView scores;
  HeadsView dy = {}, w = {};
  const float* log_sum = nullptr;
  // ChaCAL only. dgamma: partial sums, [tile slots (see tile_slots()), heads, slices]
  HeadsView v = {}, y = {};
  const float* gamma = nullptr;
  std::int32_t gamma_step = 0;
  float* dgamma = nullptr;
  // DeltaFormer only. gain: the gains, [rows, heads]; dv: the gradient of v, may be empty
  const float* gain = nullptr;
  HeadsView dv = {};
  std::int32_t key_slices = 1, value_slices = 1;
  std::int32_t* progress = nullptr;
};

template <class Product, int slice>
constexpr std::size_t chain_backward_bytes = std::max(sizeof(typename Product::Element) * 2 *
                                                          tile_rows * Product::stride(slice),
                                                      substitution_bytes<slice>);

/// A thread block that computes W, the solution of the transposed system, for the rows of one tile
/// of keys. Its steps are member functions, in the order in which run() calls them.
template <class Product, int slice, Chain chain>
struct ChainBlock {
  using Element = typename Product::Element;
  static constexpr bool chacal = chain == Chain::chacal;
  static constexpr int n = slice / 8, m = tile_rows / 8, stride = Product::stride(slice);
  using Weights = float[m][4];
  struct Shared {
    float factors[tile_rows], log_sums[tile_rows], sums[32];
    float gains[chacal ? 1 : tile_rows];
  };

  const ChainTask& task;
  const ScoresView& scores;
  Shared& shared;
  const SegmentView& at;
  const int first, rows;                   // the tile has the keys first to first + rows - 1
  const int head, key_head, part, column;  // column: first column of this block's slice of the head
  // In shared memory. k: the tile's keys. q: a tile of queries, which is later overwritten by the
  // solution W for these queries.
  Element *const k, *const q;
  const int warp, row;  // row: index of this thread's first key in the tile
  const bool busy;      // false if the warp has no key
  const float g;        // ChaCAL's gamma for this head; 1 for DeltaFormer
  const std::int64_t first_row;
  const float first_shift;  // shift (Scores::decay) of the tile's first key

  __device__ __forceinline__ ChainBlock(const ChainTask& of, Shared& in, const SegmentView& segment,
                                        int first_of, int of_head, int of_part)
      : task(of),
        scores(of.scores),
        shared(in),
        at(segment),
        first(first_of),
        rows(min(tile_rows, at.keys - first)),
        head(of_head),
        key_head(head / scores.group),
        part(of_part),
        column(part * slice),
        k(shared_memory<Element>()),
        q(k + tile_rows * stride),
        warp(warp_index()),
        row(16 * warp + lane_row()),
        busy(16 * warp < rows),
        g(chacal ? task.gamma[head * task.gamma_step] : 1.0f),
        first_row(at.query + first),
        first_shift(scores.shift_of(at.key + first, head)) {}

  /// Computes this tile of W, the solution of the triangular system, and stores it. For ChaCAL,
  /// also stores the tile's part of dgamma. `done` points into the array `progress` (tickets.h), to
  /// a word that becomes 1 when this tile of W is finished. The words of the later tiles follow
  /// this word.
  __device__ __forceinline__ void run(const std::int32_t* done, float* dgamma) const {
    float b[n][4], shift[2];
    load_shifts(shift);
    clear(b);
    if (task.key_slices == 1) {
      stage<Product, slice, tile_rows>(k, scores.k, at.key + first, rows, key_head, 0);
      commit_copies();
      wait_for_copies<0>();
      settle<Product, slice, tile_rows>(k, scores.k);
    }
    Weights p;
    for (int begin = (at.keys - 1) / tile_rows * tile_rows; begin >= first; begin -= tile_rows) {
      const int count = min(tile_rows, at.keys - begin);
      multiply(p, begin, count);
      if (busy) weigh(p, shift, begin, count);
      if (begin == first) break;
      wait_for(done +
               (begin - first) / tile_rows * (std::int64_t{scores.heads} * task.value_slices));
      stage<Product, slice, tile_rows>(q, task.w, at.query + begin, count, head, column);
      commit_copies();
      wait_for_copies<0>();
      settle<Product, slice, tile_rows>(q, task.w);
      __syncthreads();
      if (busy) mix<Product>(b, p, q);
    }
    solve(b, p, dgamma);
  }

  /// Loads the shifts (Scores::decay) of this thread's two keys, minus the shift of the tile's
  /// first key. Such differences are small, so they have small rounding errors.
  __device__ __forceinline__ void load_shifts(float (&shift)[2]) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = min(row + 8 * i, rows - 1);
      shift[i] = (scores.shift_of(at.key + first + r, head) - first_shift) * log2_of_e;
    }
  }

  /// Computes p = k . q for the queries begin .. begin + count - 1.
  __device__ __forceinline__ void multiply(Weights& p, int begin, int count) const {
    clear(p);
    for (int s = 0; s < task.key_slices; ++s) {
      __syncthreads();
      if (s == 0) store_query_numbers(begin, count);
      if (task.key_slices > 1) {
        stage<Product, slice, tile_rows>(k, scores.k, at.key + first, rows, key_head, s * slice);
      }
      stage<Product, slice, tile_rows>(q, scores.q, at.query + begin, count, head, s * slice);
      commit_copies();
      wait_for_copies<0>();
      if (task.key_slices > 1) settle<Product, slice, tile_rows>(k, scores.k);
      settle<Product, slice, tile_rows>(q, scores.q);
      __syncthreads();
      if (busy) dots<Product, slice>(p, k + 16 * warp * stride, q);
    }
  }
  __device__ __forceinline__ void store_query_numbers(int begin, int count) const {
    const int r = static_cast<int>(threadIdx.x);
    if (r >= tile_rows) return;
    const std::int64_t token = at.query + begin + r;
    shared.factors[r] = scores.scale * scores.tau_of(token, head, r < count) * log2_of_e;
    shared.log_sums[r] = 0;
    if (!chacal) shared.gains[r] = r < count ? task.gain[token * scores.heads + head] : 0.0f;
    if (r < count) {
      const float own_shift = scores.shift_of(at.key + begin + r, head) - first_shift;
      shared.log_sums[r] = (task.log_sum[token * scores.heads + head] - own_shift) * log2_of_e;
    }
  }

  /// Replaces the products k . q in p by the attention weights P. For DeltaFormer, the weights of a
  /// query are multiplied by its gain, and the weight of its own key has no meaning and is not
  /// used.
  __device__ __forceinline__ void weigh(Weights& p, const float (&shift)[2], int begin,
                                        int count) const {
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int r = 8 * c + 2 * lane_column() + e % 2, key = first + row + 8 * (e / 2);
        p[c][e] = power_of_two(p[c][e] * shared.factors[r] - shared.log_sums[r] - shift[e / 2]);
        if (!chacal) p[c][e] *= shared.gains[r];
        if (r >= count || begin + r < key) p[c][e] = 0;
      }
    }
  }

  /// Computes the tile's rows of W. b contains the terms of the sums B_j whose queries are in later
  /// tiles. p contains the weights of the tile's own queries. Stores W and, for ChaCAL, this
  /// block's part of dgamma.
  __device__ __forceinline__ void solve(const float (&b)[n][4], const Weights& p,
                                        float* dgamma) const {
    float* const sums = shared_memory<float>();
    float* const links = sums + tile_rows * sums_stride<slice>;
    float* const diagonal = links + tile_rows * links_stride;
    __syncthreads();
    if (busy) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int r = row + 8 * i, c0 = 2 * lane_column() + j;
#pragma unroll
          for (int c = 0; c < n; ++c) sums[r * sums_stride<slice> + 8 * c + c0] = b[c][2 * i + j];
#pragma unroll
          for (int c = 0; c < m; ++c) {
            links[(8 * c + c0) * links_stride + r] = p[c][2 * i + j];
            if (chacal && 8 * c + c0 == r) diagonal[r] = p[c][2 * i + j];
          }
        }
      }
    }
    __syncthreads();
    float gamma_sum = substitute_back(sums, links, diagonal);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * slice; i += attention_threads) {
      const int r = i / slice, c = i % slice;
      if (column + c < task.w.width) {
        const float w_r = sums[r * sums_stride<slice> + c];
        store_one(task.w, first_row + r, head, column + c, w_r);
        if (!chacal && task.dv) store_one(task.dv, at.key + first + r, head, column + c, w_r);
      }
    }
    if (!chacal) return;
    gamma_sum = block_sum(gamma_sum, shared.sums);
    if (threadIdx.x == 0) *dgamma = gamma_sum;
  }

  /// Solves W_s = dy_s + g B_s for the rows s of one tile, from the last row to the first. On
  /// entry, row s of `sums` contains the terms of the sum B_s whose rows i are in later tiles. The
  /// function adds the terms links[i][s] W_i of the tile's own rows i, and replaces row s by W_s.
  /// Each thread handles one column and returns its part of dgamma, which is 0 for DeltaFormer.
  __device__ __forceinline__ float substitute_back(float* sums, const float* links,
                                                   const float* diagonal) const {
    const int own_column = static_cast<int>(threadIdx.x);
    float gamma_sum = 0;
    if (own_column >= slice || column + own_column >= task.w.width) return gamma_sum;
    for (int panel = (rows - 1) / 16 * 16; panel >= 0; panel -= 16) {
      float own[16];
#pragma unroll
      for (int r = 0; r < 16; ++r) own[r] = sums[(panel + r) * sums_stride<slice> + own_column];
      for (int s = panel + 16; s < rows; ++s) {
        const float w_s = sums[s * sums_stride<slice> + own_column];
        const float* const link = links + s * links_stride + panel;
#pragma unroll
        for (int r = 0; r < 16; ++r) own[r] += link[r] * w_s;
      }
#pragma unroll
      for (int s = 15; s >= 0; --s) {
        if (panel + s >= rows) continue;
        const std::int64_t token = first_row + panel + s;
        const int c = column + own_column;
        const float w_s = load_one(task.dy, token, head, c) + g * own[s];
        if constexpr (chacal) {
          const float a = own[s] + diagonal[panel + s] * w_s;
          gamma_sum += own[s] * load_one(task.y, token, head, c) -
                       a * load_one(task.v, at.key + first + panel + s, key_head, c);
        }
        const float* const link = links + (panel + s) * links_stride + panel;
#pragma unroll
        for (int r = 0; r < s; ++r) own[r] += link[r] * w_s;
        sums[(panel + s) * sums_stride<slice> + own_column] = w_s;
      }
    }
    return gamma_sum;
  }
};

template <class Product, int slice, Chain chain>
__global__ void __launch_bounds__(
    attention_threads, blocks_on(120, budgeted_blocks(3, chain_backward_bytes<Product, slice>)))
    chain_backward_kernel(ChainTask task) {
  using Block = ChainBlock<Product, slice, chain>;
  __shared__ typename Block::Shared shared;
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads, parts = task.value_slices;
  const int ranks = most_tiles(segments.key_length, segments.count);
  for (;;) {
    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const SegmentView at = segments[next.segment];
    const int tiles = (at.keys + tile_rows - 1) / tile_rows, tile = tiles - 1 - next.rank;
    if (tile < 0) continue;
    const std::int64_t slot = at.key / tile_rows + next.segment + tile;
    const std::int64_t own = (slot * heads + next.head) * parts + next.slice;
    std::int32_t* const done = task.progress + 1 + own;
    Block(task, shared, at, tile * tile_rows, next.head, next.slice)
        .run(done, Block::chacal ? task.dgamma + own : nullptr);
    publish(done);
  }
}

/// Launches chain_backward_kernel. The caller has set the members of `task` that describe its
/// operation. `slots` is the number of tile slots (see tile_slots()).
template <class Product, int slice, Chain chain>
void launch_chain_backward(CudaBackend& backend, ChainTask task, std::int64_t slots) {
  task.key_slices = slices(task.scores.q.width, slice);
  task.value_slices = slices(task.w.width, slice);
  const std::int64_t tiles = slots * task.scores.heads * task.value_slices;
  const Tensor progress(backend, {progress_words(slots, task.scores.heads, task.value_slices)},
                        DType::i32);
  backend.stream().zero(progress.address(), progress.bytes());
  task.progress = progress.data<std::int32_t>();
  launch(backend.stream(), ticket_blocks(backend, tiles), attention_threads,
         chain_backward_bytes<Product, slice>, &chain_backward_kernel<Product, slice, chain>, task);
}

/// The math mode in which products round the rows of W. bf16 tensors use the bf16 product in all
/// modes except exact.
inline Math rounding_of(CudaBackend& backend, const Scores& scores) {
  const Math math = backend.math(scores.math);
  return math != Math::exact && scores.q.data.dtype() == DType::bf16 ? Math::bf16 : math;
}

}  // namespace longhand::cuda
