#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// A thread block that computes the gradients of one tile of queries,
///   r_i = scale sum_j dS_ij k_j;  dq_i = tau_i r_i;  dtau_i = q_i . r_i,
/// where tau_i is the multiplier of query i's scores (Scores::multiplier). Its phases are member
/// functions, in the order in which run() calls them. For wide heads (wide.h), the block computes
/// up to wide_columns columns of r_i and dq_i, and the terms of dtau_i from these columns.
template <class Product, int slice, Steps steps, bool shifted>
struct QueryBlock {
  using Element = typename Product::Element;
  using Tiles = WideTiles<Product>;
  static constexpr bool wide = steps == Steps::wide;
  static constexpr int block_rows = gradient_rows<steps>;
  static constexpr int step = gradient_step<Product, slice, steps>;
  // for each warp, in groups of 8: n columns of dq, and m keys of a step
  static constexpr int n = wide ? Tiles::slices * Tiles::n : slice / 8;
  static constexpr int m = wide ? 2 : step / 8;
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
  // part: index of this block's part of the columns of dq; 0 unless heads are wide
  const int head, part, key_head;
  const Tile tile;
  const SegmentView at;
  // Tiles in shared memory, not used for wide heads (WideTiles). q: the queries of the tile. dy:
  // the rows of dy of these queries. ring: one or two buffers, each for the keys and values of one
  // step of the main loop.
  Element *const q, *const dy, *const ring;
  const int rows;  // number of queries; not positive if this block has no tile of queries
  // Position of the tile's first query. Without a causal mask, queries are treated as if they came
  // after the last key, so `start` is the number of keys.
  const int start;
  const int stop;  // the queries see only keys before `stop`
  const std::int64_t first_row;
  const int warp_row, row;  // indices of the warp's and this thread's first query in the tile
  const int own;            // offset, in entries, of the warp's rows in a tile
  const int warp_key;       // index, in the keys of a step, of the first key of the warp's products
  const bool busy;          // false if the warp has no query
  const float g;  // ChaCAL only: gamma of the head, whose values are (1 - gamma) v + gamma y
  const int first_key;

  __device__ __forceinline__ QueryBlock(const GradientTask& of, KeyShifts& of_keys)
      : task(of),
        scores(of.scores),
        key_shifts(of_keys),
        head(static_cast<int>(blockIdx.y)),
        part(static_cast<int>(blockIdx.z)),
        key_head(head / scores.group),
        tile(tile_at(scores.segments.query_begin, scores.segments.count, block_rows, blockIdx.x)),
        at(scores.segments[tile.segment]),
        q(shared_memory<Element>()),
        dy(q + block_rows * stride),
        ring(dy + block_rows * stride),
        rows(min(block_rows, at.queries - tile.first)),
        start(min(scores.offset(at) + tile.first, at.keys)),
        stop(min(start + rows, at.keys)),
        first_row(at.query + tile.first),
        warp_row(16 * (wide ? wide_band() : warp_index())),
        row(warp_row + lane_row()),
        own(warp_row * stride),
        warp_key(wide ? 16 * wide_quarter() : 0),
        busy(warp_row < rows),
        g(task.gamma ? task.gamma[head * task.gamma_step] : 0.0f),
        first_key(scores.first_key(start) / step * step) {}

  __device__ __forceinline__ void run() const {
    float dq[1][n][4];
    clear(dq[0]);
    Queries of;
    load_numbers(of);
    if constexpr (wide) {
      sum_wide(dq, of);
    } else {
      sum(dq, of);
    }
    finish(dq, of);
  }
  /// Computes the sums dq and, if the scores have shifts, of.row_sums.
  __device__ __forceinline__ void sum(float (&dq)[1][n][4], Queries& of) const {
    load_first();
    int now = 0, turn = 0;  // now: offset of this step's keys and values in `ring`
    for (int begin = first_key; begin < stop; begin += step, turn = 1 - turn) {
      if (shifted) store_key_shifts(begin, turn);
      Element* const k = ring + now;
      now = steps == Steps::ahead ? 2 * step * stride - now : now;
      Products s, dp;
      clear(s);
      clear(dp);
      multiply(s, dp, k, ring + now, begin);
      if (busy) {
        compute_gradients(s, dp, of, begin, turn);
        if (shifted) add_row_sums(of, s);
        mix<Product>(dq[0], s, k);
      }
      if (steps != Steps::ahead && begin + step < stop) {
        __syncthreads();
        bring(k, begin + step);
        commit_copies();
      }
    }
  }
  /// The same as sum(), for wide heads (wide.h).
  __device__ __forceinline__ void sum_wide(float (&dq)[1][n][4], Queries& of) const {
    Tiles tiles;
    const int first_slice = part * Tiles::slices;
    const int own_row = static_cast<int>(first_row), first_of_keys = static_cast<int>(at.key);
    const HeadRows queries{scores.q, own_row, rows, head}, dys{task.dy, own_row, rows, head};
    const auto keys_of = [&](int begin) {
      return HeadRows{scores.k, first_of_keys + begin, min(step, stop - begin), key_head};
    };
    if (first_key < stop) tiles.bring(queries, keys_of(first_key), 0);
    commit_copies();
    int turn = 0;
    for (int begin = first_key; begin < stop; begin += step, turn = 1 - turn) {
      if (shifted) store_key_shifts(begin, turn);
      const HeadRows keys = keys_of(begin);
      const ValueRows values{task, at, begin, keys.count, head};
      Products s, dp;
      clear(s);
      clear(dp);
      tiles.multiply(s, queries, keys, task.key_slices, busy, [&] { tiles.bring(dys, values, 0); });
      tiles.multiply(dp, dys, values, task.value_slices, busy,
                     [&] { tiles.bring(keys, first_slice); });
      if (busy) compute_gradients(s, dp, of, begin, turn);
      typename Tiles::Weights ds;
      tiles.exchange(ds, s);
      if (shifted) add_row_sums(of, ds[0]);
      tiles.mix(dq, ds, keys, first_slice, task.key_slices, busy, [&] {
        if (begin + step < stop) tiles.bring(queries, keys_of(begin + step), 0);
      });
    }
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

  /// Starts to copy the keys of a step and their values.
  __device__ __forceinline__ void bring(Element* k, int begin) const {
    const int count = min(step, stop - begin);
    stage<Product, slice, step>(k, scores.k, at.key + begin, count, key_head, 0);
    stage_values<Product, slice, step>(k + step * stride, task, at, begin, count, head, 0);
  }
  __device__ __forceinline__ void load_first() const {
    stage<Product, slice, block_rows>(q, scores.q, first_row, rows, head, 0);
    stage<Product, slice, block_rows>(dy, task.dy, first_row, rows, head, 0);
    bring(ring, first_key);
    commit_copies();
    wait_for_copies<0>();
    settle<Product, slice, block_rows>(q, scores.q);
    settle<Product, slice, block_rows>(dy, task.dy);
  }

  __device__ __forceinline__ void store_key_shifts(int begin, int turn) const {
    const int thread = static_cast<int>(threadIdx.x), key = begin + thread;
    if (thread >= step) return;
    key_shifts[turn][thread] = key < stop ? scores.shift_of(at.key + key, head) : 0.0f;
  }

  /// Computes s = q . k and dp = dy . v for the keys of one step. The caller has already started to
  /// copy these keys and values. If `steps` is ahead, starts to copy those of the next step.
  __device__ __forceinline__ void multiply(Products& s, Products& dp, Element* k, Element* next,
                                           int begin) const {
    Element* const v = k + step * stride;
    wait_for_copies<0>();
    settle<Product, slice, step>(k, scores.k);
    settle_values<Product, slice, step>(v, task);
    __syncthreads();
    if (steps == Steps::ahead && begin + step < stop) bring(next, begin + step);
    commit_copies();
    if (!busy) return;
    dots<Product, slice>(s, q + own, k);
    dots<Product, slice>(dp, dy + own, v);
  }
  /// Replaces the warp's products s = q . k by dS, and the products dp = dy . v by P.
  __device__ __forceinline__ void compute_gradients(Products& s, Products& dp, Queries& of,
                                                    int begin, int turn) const {
    const bool masked = begin + step > start || scores.window > 0;
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        float shift = 0;
        if constexpr (shifted) {
          const int key = warp_key + 8 * c + 2 * lane_column() + e % 2;
          shift = of.shift[e / 2] - key_shifts[turn][key];
        }
        const float p = weight_of<shifted>(s[c][e], of.factor[e / 2], shift, of.log_sum[e / 2]);
        const float ds = p * (dp[c][e] - of.d[e / 2]);
        dp[c][e] = p;
        s[c][e] = ds;
      }
    }
    if (masked) mask(s, dp, of, begin + warp_key);
  }

  template <int count>
  __device__ __forceinline__ static void add_row_sums(Queries& of, const float (&ds)[count][4]) {
#pragma unroll
    for (int c = 0; c < count; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) of.row_sums[e / 2] += ds[c][e];
    }
  }

  /// Sets dS to 0 for keys that a query does not see. For ChaCAL, also corrects dS of the query's
  /// own key. There, dP is the computed product dy . v minus gamma D, where D is the query's entry
  /// of task.row_dots (gradients.h), so P gamma D is subtracted from dS. `first_of_warp`
  /// is the first key of the warp's products.
  __device__ __forceinline__ void mask(Products& s, const Products& p, const Queries& of,
                                       int first_of_warp) const {
    const int column = first_of_warp + 2 * lane_column();
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

  /// Stores dq, the terms of dtau (the gradient of Scores::multiplier) from these columns of dq,
  /// and the row sums of dS.
  __device__ __forceinline__ void finish(const float (&dq)[1][n][4], const Queries& of) const {
    // The results overwrite q in shared memory. If the queries see no key, the block has not passed
    // a barrier yet, and other threads may still copy queries there.
    if (!wide && first_key >= stop) __syncthreads();
    // The four warps of a band have the same row sums, but different columns of dq.
    const int quarter = wide ? wide_quarter() : 0;
    float taus[1][2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i;
      taus[0][i] = scores.scale * scores.tau_of(first_row + r, head, r < rows);
      if (!shifted && task.gain && r < rows)
        taus[0][i] *= task.gain[(first_row + r) * scores.heads + head];
      if (shifted && task.row_sums && part == 0) {
        const float all = row_sum(of.row_sums[i]);
        if (r < rows && lane_column() == 0 && quarter == 0)
          task.row_sums[(first_row + r) * scores.heads + head] = all;
      }
      if (!task.dtau) continue;
      float row_total = 0;
#pragma unroll
      for (int c = 0; c < n; ++c) {
        const int first = (wide ? Tiles::column(part, c) : 8 * c) + 2 * lane_column();
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          if (r >= rows || first + j >= scores.q.width) continue;
          row_total += load_one(scores.q, first_row + r, head, first + j) * dq[0][c][2 * i + j];
        }
      }
      row_total = scores.scale * row_sum(row_total);
      if (r < rows && lane_column() == 0) {
        const std::int64_t of_quarter = 4 * part + quarter;
        task.dtau[(of_quarter * task.query_rows + first_row + r) * scores.heads + head] = row_total;
      }
    }
    if (!task.dq) return;
    if constexpr (wide) {
      Tiles().store(task.dq, first_row, rows, head, part, dq, taus);
    } else if (busy) {
      store_rows<Product>(q + own, task.dq, first_row + warp_row, rows - warp_row, head, 0, dq,
                          taus);
    }
  }
};

template <class Product, int slice, Steps steps, bool shifted>
__global__ void __launch_bounds__(attention_threads,
                                  budgeted_blocks(slice < 128 ? 3 : 2,
                                                  gradient_bytes<Product, slice, steps>))
    query_gradients(GradientTask task) {
  using Block = QueryBlock<Product, slice, steps, shifted>;
  __shared__ typename Block::KeyShifts key_shifts;
  const Block block(task, key_shifts);
  if (block.rows > 0) block.run();
}
template <class Product, bool shifted>
__global__ void __launch_bounds__(wide_threads, 1) wide_query_gradients(GradientTask task) {
  using Block = QueryBlock<Product, WideSlice<Product>::value, Steps::wide, shifted>;
  __shared__ typename Block::KeyShifts key_shifts;
  const Block block(task, key_shifts);
  if (block.rows > 0) block.run();
}
template <class Product, int slice, Steps steps, bool shifted>
constexpr auto query_kernel() {
  if constexpr (steps == Steps::wide) {
    return &wide_query_gradients<Product, shifted>;
  } else {
    return &query_gradients<Product, slice, steps, shifted>;
  }
}

}  // namespace

void launch_query_gradients(CudaBackend& backend, Math math, const Scores& scores,
                            const Target& dtau, GradientTask task) {
  visit_gradients(
      backend, math, scores, task, [&](auto product, auto size, auto variant, auto shift) {
        using Kind = decltype(product);
        constexpr int slice = decltype(size)::value;
        constexpr Steps steps = decltype(variant)::value;
        const std::int64_t rows = scores.q.data.rows(), heads = scores.q.heads;
        const std::int64_t slots = tile_slots(rows, scores.queries.count(), gradient_rows<steps>);
        const int parts = steps == Steps::wide ? wide_parts(scores.q.width) : 1;
        const int sums_of_row = steps == Steps::wide ? 4 * parts : 1;
        Tensor sums;
        if (dtau) {
          sums =
              Tensor(backend, {std::max<std::int64_t>(1, rows * heads * sums_of_row)}, DType::f32);
          task.dtau = sums.data<float>();
          task.query_rows = rows;
        }
        launch(backend.stream(), {slots, heads, parts}, gradient_threads<steps>,
               gradient_bytes<Kind, slice, steps>,
               query_kernel<Kind, slice, steps, decltype(shift)::value>(), task);
        if (dtau) add_slices(backend, task.dtau, sums_of_row, dtau);
      });
}

}  // namespace longhand::cuda
