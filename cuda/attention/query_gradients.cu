#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// A thread block that computes the gradients of one tile of queries,
///   r_i = scale sum_j dS_ij k_j;  dq_i = tau_i r_i;  dtau_i = q_i . r_i,
/// where tau_i is the multiplier of query i's scores (Scores::multiplier). The block computes one
/// slice of the columns of r_i and dq_i, and the terms of dtau_i from these columns. Its steps are
/// member functions, in the order in which run() calls them.
template <class Product, int slice, bool shifted, bool ahead>
struct QueryBlock {
  using Element = typename Product::Element;
  static constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  static constexpr int stride = Product::stride(slice);
  /// The shifts (Scores::decay) of the keys of the current and of the previous step of the main
  /// loop. Other warps may still read the shifts of the previous step.
  using KeyShifts = float[2][shifted ? step : 1];
  /// Numbers of the two queries whose rows this thread holds. factor: the factor of q . k in a
  /// score. d: the dot product dy . y (task.row_dots). shift: the shift (Scores::decay). row_sums:
  /// this thread's part of the sum of the query's row of dS.
  struct Queries {
    float factor[2], log_sum[2], d[2], shift[2] = {0, 0}, row_sums[2] = {0, 0};
  };
  using Products = float[m][4];

  const GradientTask& task;
  const ScoresView& scores;
  KeyShifts& key_shifts;
  const int head, part, key_head;
  const Tile tile;
  const SegmentView at;
  // In shared memory. q: the queries of the tile. dy: the rows of dy of these queries. ring: one or
  // two buffers, each for the keys and values of one step of the main loop.
  Element *const q, *const dy, *const ring;
  const int rows;  // number of queries; not positive if this block has no tile of queries
  // Position of the tile's first query. Without a causal mask, queries are treated as if they came
  // after the last key, so `start` is the number of keys.
  const int start;
  const int stop;  // the queries see only keys before `stop`
  const std::int64_t first_row;
  const int warp, row;  // row: index of this thread's first query in the tile
  const int own;        // offset, in entries, of the warp's rows in a tile
  const bool busy;      // false if the warp has no query
  const float g;        // ChaCAL only: gamma of the head, whose values are (1 - gamma) v + gamma y
  const int first_key, parts;
  const bool single;  // true if the heads are at most one slice wide

  __device__ __forceinline__ QueryBlock(const GradientTask& of, KeyShifts& of_keys)
      : task(of),
        scores(of.scores),
        key_shifts(of_keys),
        head(static_cast<int>(blockIdx.y)),
        part(static_cast<int>(blockIdx.z)),
        key_head(head / scores.group),
        tile(tile_at(scores.segments.query_begin, scores.segments.count, tile_rows, blockIdx.x)),
        at(scores.segments[tile.segment]),
        q(shared_memory<Element>()),
        dy(q + tile_rows * stride),
        ring(dy + tile_rows * stride),
        rows(min(tile_rows, at.queries - tile.first)),
        start(min(scores.offset(at) + tile.first, at.keys)),
        stop(min(start + rows, at.keys)),
        first_row(at.query + tile.first),
        warp(warp_index()),
        row(16 * warp + lane_row()),
        own(16 * warp * stride),
        busy(16 * warp < rows),
        g(task.gamma ? task.gamma[head * task.gamma_step] : 0.0f),
        first_key(scores.first_key(start) / step * step),
        parts(max(task.key_slices, task.value_slices)),
        single(slice < 128 || parts == 1) {}

  __device__ __forceinline__ void run() const {
    float dq[1][n][4];
    clear(dq[0]);
    Queries of;
    load_numbers(of);
    load_first();
    int now = 0, turn = 0;  // now: offset of this step's keys and values in `ring`
    for (int begin = first_key; begin < stop; begin += step, turn = 1 - turn) {
      if (shifted) store_key_shifts(begin, turn);
      Element* const k = ring + now;
      now = ahead ? 2 * step * stride - now : now;
      Products s, dp;
      clear(s);
      clear(dp);
      if (single) {
        multiply(s, dp, k, ring + now, begin);
      } else {
        multiply_slices(s, dp, k, begin);
      }
      if (busy) {
        compute_gradients(s, dp, of, begin, turn);
        mix<Product>(dq[0], s, k);
      }
      if (single && !ahead && begin + step < stop) {
        __syncthreads();
        bring(k, begin + step, 0, 0);
        commit_copies();
      }
    }
    finish(dq, of);
  }

  __device__ __forceinline__ void load_numbers(Queries& of) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      const std::int64_t at_row = (first_row + r) * scores.heads + head;
      of.factor[i] = scores.scale * scores.tau_of(first_row + r, head, r < rows) * log2_of_e;
      if (shifted && r < rows) of.shift[i] = scores.shift_of(at.key + start + r, head);
      of.log_sum[i] = r < rows ? task.log_sum[at_row] * log2_of_e : 0.0f;
      of.d[i] = r < rows ? task.row_dots[at_row] : 0.0f;
    }
  }

  /// Starts to copy the keys of a step and their values: the slice `key_part` of the keys and the
  /// slice `value_part` of the values. The numbers of slices of k and v may differ. Nothing is
  /// copied for an index beyond the last slice.
  __device__ __forceinline__ void bring(Element* k, int begin, int key_part, int value_part) const {
    const int count = min(step, stop - begin);
    if (key_part < task.key_slices) {
      stage<Product, slice, step>(k, scores.k, at.key + begin, count, key_head, key_part * slice);
    }
    if (value_part < task.value_slices) {
      stage_values<Product, slice, step>(k + step * stride, task, at, begin, count, head,
                                         value_part * slice);
    }
  }
  __device__ __forceinline__ void bring_queries(int column) const {
    stage<Product, slice, tile_rows>(q, scores.q, first_row, rows, head, column);
  }
  __device__ __forceinline__ void bring_dy(int column) const {
    stage<Product, slice, tile_rows>(dy, task.dy, first_row, rows, head, column);
  }
  __device__ __forceinline__ void load_first() const {
    if (task.key_slices == 1) bring_queries(0);
    if (task.value_slices == 1) bring_dy(0);
    if (single) bring(ring, first_key, 0, 0);
    commit_copies();
    wait_for_copies<0>();
    if (task.key_slices == 1) settle<Product, slice, tile_rows>(q, scores.q);
    if (task.value_slices == 1) settle<Product, slice, tile_rows>(dy, task.dy);
  }

  __device__ __forceinline__ void store_key_shifts(int begin, int turn) const {
    const int thread = static_cast<int>(threadIdx.x), key = begin + thread;
    if (thread >= step) return;
    key_shifts[turn][thread] = key < stop ? scores.shift_of(at.key + key, head) : 0.0f;
  }

  /// Computes s = q . k and dp = dy . v for the keys of one step. The caller has already started to
  /// copy these keys and values. If `ahead` is set, starts to copy those of the next step.
  __device__ __forceinline__ void multiply(Products& s, Products& dp, Element* k, Element* next,
                                           int begin) const {
    Element* const v = k + step * stride;
    wait_for_copies<0>();
    settle<Product, slice, step>(k, scores.k);
    settle_values<Product, slice, step>(v, task);
    __syncthreads();
    if (ahead && begin + step < stop) bring(next, begin + step, 0, 0);
    commit_copies();
    if (!busy) return;
    dots<Product, slice>(s, q + own, k);
    dots<Product, slice>(dp, dy + own, v);
  }
  /// Computes s = q . k and dp = dy . v for heads that are several slices wide, one slice after
  /// another. The slice of the keys that this block needs for dq is loaded last, so that it is
  /// still in shared memory afterwards.
  __device__ __forceinline__ void multiply_slices(Products& s, Products& dp, Element* k,
                                                  int begin) const {
    Element* const v = k + step * stride;
    for (int i = 0; i < parts; ++i) {
      const int key_part = i < task.key_slices ? (part + 1 + i) % task.key_slices : i;
      __syncthreads();
      if (i < task.key_slices && task.key_slices > 1) bring_queries(key_part * slice);
      if (i < task.value_slices && task.value_slices > 1) bring_dy(i * slice);
      bring(k, begin, key_part, i);
      commit_copies();
      wait_for_copies<0>();
      if (i < task.key_slices) {
        if (task.key_slices > 1) settle<Product, slice, tile_rows>(q, scores.q);
        settle<Product, slice, step>(k, scores.k);
      }
      if (i < task.value_slices) {
        if (task.value_slices > 1) settle<Product, slice, tile_rows>(dy, task.dy);
        settle_values<Product, slice, step>(v, task);
      }
      __syncthreads();
      if (!busy) continue;
      if (i < task.key_slices) dots<Product, slice>(s, q + own, k);
      if (i < task.value_slices) dots<Product, slice>(dp, dy + own, v);
    }
  }

  /// Replaces the products s = q . k by dS, and the products dp = dy . v by P.
  __device__ __forceinline__ void compute_gradients(Products& s, Products& dp, Queries& of,
                                                    int begin, int turn) const {
    const bool masked = begin + step > start || scores.window > 0;
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float shift = 0;
        if constexpr (shifted) {
          shift = of.shift[e / 2] - key_shifts[turn][8 * c + 2 * lane_column() + e % 2];
        }
        const float p = weight_of<shifted>(s[c][e], of.factor[e / 2], shift, of.log_sum[e / 2]);
        const float ds = p * (dp[c][e] - of.d[e / 2]);
        dp[c][e] = p;
        s[c][e] = ds;
      }
    }
    if (masked) mask(s, dp, of, begin);
    if constexpr (shifted) {
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) of.row_sums[e / 2] += s[c][e];
      }
    }
  }

  /// Sets dS to 0 for keys that a query does not see. For ChaCAL, also corrects dS of the query's
  /// own key. There, dP is the computed product dy . v minus gamma D, where D is the query's entry
  /// of task.row_dots (gradients.h), so P gamma D is subtracted from dS.
  __device__ __forceinline__ void mask(Products& s, const Products& p, const Queries& of,
                                       int begin) const {
    const int column = begin + 2 * lane_column();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int position = start + row + 8 * i - column;
      const int first = scores.first_key(start + row + 8 * i) - column,
                last = min(position, stop - 1 - column);
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int key = 8 * c + j;
          float& ds = s[c][2 * i + j];
          if (key == position) ds -= p[c][2 * i + j] * g * of.d[i];
          ds = key >= first && key <= last ? ds : 0.0f;
        }
      }
    }
  }

  /// Stores this block's slice of dq, the terms of dtau (the gradient of Scores::multiplier) from
  /// this slice, and the row sums of dS.
  __device__ __forceinline__ void finish(const float (&dq)[1][n][4], const Queries& of) const {
    // The results overwrite q in shared memory. If the queries see no key, the block has not passed
    // a barrier yet, and other threads may still copy queries there.
    if (first_key >= stop) __syncthreads();
    float taus[1][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      taus[0][i] = scores.scale * scores.tau_of(first_row + r, head, r < rows);
      if (!shifted && task.gain && r < rows)
        taus[0][i] *= task.gain[(first_row + r) * scores.heads + head];
      if (shifted && task.row_sums && part == 0) {
        const float all = row_sum(of.row_sums[i]);
        if (r < rows && lane_column() == 0)
          task.row_sums[(first_row + r) * scores.heads + head] = all;
      }
      if (!task.dtau) continue;
      float row_total = 0;
#pragma unroll
      for (int c = 0; c < n; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int column = part * slice + 8 * c + 2 * lane_column() + j;
          if (r >= rows || column >= scores.q.width) continue;
          row_total += load_one(scores.q, first_row + r, head, column) * dq[0][c][2 * i + j];
        }
      }
      row_total = scores.scale * row_sum(row_total);
      if (r < rows && lane_column() == 0) {
        task.dtau[(part * task.query_rows + first_row + r) * scores.heads + head] = row_total;
      }
    }
    if (task.dq && busy) {
      store_rows<Product>(q + own, task.dq, first_row + 16 * warp, rows - 16 * warp, head,
                          part * slice, dq, taus);
    }
  }
};

template <class Product, int slice, bool shifted, bool ahead>
__global__ void __launch_bounds__(attention_threads,
                                  budgeted_blocks(slice < 128 ? 3 : 2,
                                                  tiles_bytes<Product, slice>(ahead ? 4 : 2)))
    query_gradients(GradientTask task) {
  using Block = QueryBlock<Product, slice, shifted, ahead>;
  __shared__ typename Block::KeyShifts key_shifts;
  const Block block(task, key_shifts);
  if (block.rows > 0) block.run();
}

}  // namespace

void launch_query_gradients(CudaBackend& backend, Math math, const Scores& scores,
                            const Target& dtau, GradientTask task) {
  visit_gradients(math, scores, task, [&](auto product, auto size, auto shift) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
    const std::int64_t entries = scores.q.data.rows() * scores.q.heads;
    Tensor sums;
    if (dtau) {
      sums = Tensor(backend, {std::max<std::int64_t>(1, entries * task.key_slices)}, DType::f32);
      task.dtau = sums.data<float>();
      task.query_rows = scores.q.data.rows();
    }
    choose_steps<Kind, slice>(backend.device(), [&](auto ahead, std::size_t bytes) {
      launch(backend.stream(), {slots, scores.q.heads, task.key_slices}, attention_threads, bytes,
             &query_gradients<Kind, slice, decltype(shift)::value, decltype(ahead)::value>, task);
    });
    if (dtau) add_slices(backend, task.dtau, task.key_slices, dtau);
  });
}

}  // namespace longhand::cuda
