#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// The numbers of one query that the kernel for dk and dv needs. `factor` is scale tau log2 e,
/// where tau is Scores::multiplier. The member `tau` is also multiplied by the query's gain, if the
/// task has gains. `log_sum` is the logarithm of the softmax denominator, times
/// log2 e. `dot` is dy . y.
struct alignas(16) QueryFacts {
  float factor, log_sum, tau, dot;
};

/// Computes dk and dv for one tile of keys:
///   dk_j = scale sum_i tau_i dS_ij q_i;  dv_j = sum_i P_ij dy_i,
/// where tau is Scores::multiplier. For ChaCAL, dy is the solution W of its backward system, and
/// dv_j is also multiplied by 1 - gamma. The sums include all query heads that read key head
/// blockIdx.y. Scores are transposed: each row is a key. If the scores have shifts (Scores::decay),
/// the block also computes the gradients of its keys' shifts for each query head. The steps of the
/// block are member functions, in the order in which run() calls them.
template <class Product, int slice, bool shifted, bool ahead>
struct KeyBlock {
  using Element = typename Product::Element;
  static constexpr int step = step_rows<Product, slice>, n = slice / 8, m = step / 8;
  static constexpr int stride = Product::stride(slice);
  /// The QueryFacts of the queries of the current step of the main loop and of the next step.
  using Facts = QueryFacts[2][step];
  // the shifts (Scores::decay) of the queries of the current step of the main loop and of the next
  // step
  using QueryShifts = float[2][shifted ? step : 1];
  using Products = float[m][4];
  /// c: the shifts (Scores::decay) of this thread's two keys; sums: for each of these keys, the sum
  /// of dS over the queries.
  struct Shifts {
    float c[2] = {0, 0}, sums[2] = {0, 0};
  };

  const GradientTask& task;
  const ScoresView& scores;
  Facts& facts;
  QueryShifts& query_shifts;
  const int key_head, part;
  const Tile tile;
  const SegmentView at;
  // In shared memory. k and v: the tile's keys and values. ring: the queries, and their dy, of one
  // or two steps of the main loop.
  Element *const k, *const v, *const ring;
  const int rows;       // number of keys in the tile; not positive if this block has no tile
  const int warp, row;  // row: index of this thread's first key in the tile
  const int own;        // offset, in entries, of the warp's first row in a tile
  const bool busy;      // false if the warp has no key
  // The queries first_query .. last_query - 1 include all queries that see a key of this tile. The
  // block processes them once for each query head, first_head .. last_head - 1.
  const int first_query, last_query, first_head, last_head;
  const int parts;
  const bool single;  // true if the heads are at most one slice wide

  __device__ __forceinline__ KeyBlock(const GradientTask& of, Facts& of_queries,
                                      QueryShifts& their_shifts)
      : task(of),
        scores(of.scores),
        facts(of_queries),
        query_shifts(their_shifts),
        key_head(static_cast<int>(blockIdx.y)),
        part(static_cast<int>(blockIdx.z)),
        tile(tile_at(scores.segments.key_begin, scores.segments.count, tile_rows, blockIdx.x)),
        at(scores.segments[tile.segment]),
        k(shared_memory<Element>()),
        v(k + tile_rows * stride),
        ring(v + tile_rows * stride),
        rows(min(tile_rows, at.keys - tile.first)),
        warp(warp_index()),
        row(16 * warp + lane_row()),
        own(16 * warp * stride),
        busy(16 * warp < rows),
        first_query(max(0, tile.first - scores.offset(at)) / step * step),
        last_query(end_of_queries()),
        first_head(key_head * scores.group),
        last_head(first_query < last_query ? first_head + scores.group : first_head),
        parts(max(task.key_slices, task.value_slices)),
        single(slice < 128 || parts == 1) {}

  __device__ __forceinline__ int end_of_queries() const {
    if (scores.window == 0) return at.queries;
    return static_cast<int>(
        min(std::int64_t{at.queries}, tile.first + rows - 1 + scores.window - at.offset()));
  }

  __device__ __forceinline__ void run() const {
    Shifts shifts;
    float dk[1][n][4], dv[1][n][4];
    clear(dk[0]);
    clear(dv[0]);
    load_first();
    int turn = 0, now = 0;  // now: offset of this step's queries and dy in `ring`
    for (int head = first_head, begin = first_query; head < last_head; turn = 1 - turn) {
      const float g = task.gamma ? task.gamma[head * task.gamma_step] : 0.0f;
      if (shifted && begin == first_query) start_shifts(shifts, head);
      const bool goes_on = begin + step < last_query;
      const int next_head = goes_on ? head : head + 1;
      const int next_begin = goes_on ? begin + step : first_query;
      Element *const q = ring + now, *const dy = q + step * stride;
      now = ahead ? 2 * step * stride - now : now;
      const QueryFacts coming = facts_of(next_head, next_begin);
      const float coming_shift = shift_of_query(next_head, next_begin);
      Products s, dp;
      clear(s);
      clear(dp);
      if (task.gamma && task.value_slices == 1 && begin == first_query) {
        __syncthreads();
        bring_values(head, 0);
      }
      if (single) {
        multiply(s, dp, q, ring + now, next_head, next_begin);
      } else {
        multiply_slices(s, dp, q, head, begin);
      }
      // In the previous iteration, all warps read facts[1 - turn]. They have passed a barrier since
      // then, so it can be overwritten.
      if (static_cast<int>(threadIdx.x) < step) {
        facts[1 - turn][threadIdx.x] = coming;
        if constexpr (shifted) query_shifts[1 - turn][threadIdx.x] = coming_shift;
      }
      if (busy) {
        compute_gradients(s, dp, shifts, begin, turn, g);
        if (part < task.value_slices) mix<Product>(dv[0], dp, dy);
        if (part < task.key_slices) mix<Product>(dk[0], s, q);
      }
      if (single && !ahead && next_head < last_head) {
        __syncthreads();
        bring(q, next_head, next_begin, 0, 0);
        commit_copies();
      }
      if (shifted && next_head != head && busy) put_shift(head, shifts.sums);
      head = next_head;
      begin = next_begin;
    }
    finish(dk, dv, shifts);
  }

  __device__ __forceinline__ void bring_keys(int column) const {
    stage<Product, slice, tile_rows>(k, scores.k, at.key + tile.first, rows, key_head, column);
  }
  __device__ __forceinline__ void bring_values(int head, int column) const {
    stage_values<Product, slice, tile_rows>(v, task, at, tile.first, rows, head, column);
  }
  /// Starts to copy the queries of a step and their rows of dy: slice key_part of q and slice
  /// value_part of dy. The heads of q may have fewer slices than those of dy, or more. Nothing is
  /// copied for an index beyond the last slice.
  __device__ __forceinline__ void bring(Element* q, int head, int begin, int key_part,
                                        int value_part) const {
    const int count = min(step, at.queries - begin);
    if (key_part < task.key_slices) {
      stage<Product, slice, step>(q, scores.q, at.query + begin, count, head, key_part * slice);
    }
    if (value_part < task.value_slices) {
      stage<Product, slice, step>(q + step * stride, task.dy, at.query + begin, count, head,
                                  value_part * slice);
    }
  }
  __device__ __forceinline__ void load_first() const {
    if (task.key_slices == 1) bring_keys(0);
    if (task.value_slices == 1 && !task.gamma) bring_values(first_head, 0);
    if (single && first_head < last_head) bring(ring, first_head, first_query, 0, 0);
    commit_copies();
    if (static_cast<int>(threadIdx.x) < step) {
      facts[0][threadIdx.x] = facts_of(first_head, first_query);
      if constexpr (shifted) {
        query_shifts[0][threadIdx.x] = shift_of_query(first_head, first_query);
      }
    }
    wait_for_copies<0>();
    if (task.key_slices == 1) settle<Product, slice, tile_rows>(k, scores.k);
    if (task.value_slices == 1) settle_values<Product, slice, tile_rows>(v, task);
  }

  /// The QueryFacts of the query that this thread loads for the step that begins at query `begin`.
  __device__ __forceinline__ QueryFacts facts_of(int head, int begin) const {
    const int r = static_cast<int>(threadIdx.x);
    if (r >= min(step, at.queries - begin) || head >= last_head) return QueryFacts{};
    const std::int64_t at_row = (at.query + begin + r) * scores.heads + head;
    const float tau = scores.tau_of(at.query + begin + r, head);
    return QueryFacts{scores.scale * tau * log2_of_e, task.log_sum[at_row] * log2_of_e,
                      !shifted && task.gain ? tau * task.gain[at_row] : tau, task.row_dots[at_row]};
  }
  /// The shift (Scores::decay) of the query that this thread loads for a step, or 0 if the scores
  /// have no shifts.
  __device__ __forceinline__ float shift_of_query(int head, int begin) const {
    const int r = static_cast<int>(threadIdx.x);
    if (!shifted || r >= min(step, at.queries - begin) || head >= last_head) return 0;
    return scores.shift_of(at.key + at.offset() + begin + r, head);
  }

  __device__ __forceinline__ void start_shifts(Shifts& shifts, int head) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int key = tile.first + min(row + 8 * i, rows - 1);
      shifts.c[i] = scores.shift_of(at.key + key, head);
      shifts.sums[i] = 0;
    }
  }

  /// Computes s = k . q and dp = v . dy for one step of queries. The copies of these queries and
  /// their dy were started before. If `ahead` is set, starts the copies for the next step.
  __device__ __forceinline__ void multiply(Products& s, Products& dp, Element* q, Element* next,
                                           int next_head, int next_begin) const {
    Element* const dy = q + step * stride;
    wait_for_copies<0>();
    settle<Product, slice, step>(q, scores.q);
    settle<Product, slice, step>(dy, task.dy);
    __syncthreads();
    if (ahead && next_head < last_head) bring(next, next_head, next_begin, 0, 0);
    commit_copies();
    if (!busy) return;
    dots<Product, slice>(s, k + own, q);
    dots<Product, slice>(dp, v + own, dy);
  }
  /// Computes s = k . q and dp = v . dy for heads of several slices, one slice after another. The
  /// slices of q and dy that this block needs for dk and dv are loaded last.
  __device__ __forceinline__ void multiply_slices(Products& s, Products& dp, Element* q, int head,
                                                  int begin) const {
    Element* const dy = q + step * stride;
    for (int i = 0; i < parts; ++i) {
      const int key_part = i < task.key_slices ? (part + 1 + i) % task.key_slices : i;
      const int value_part = i < task.value_slices ? (part + 1 + i) % task.value_slices : i;
      __syncthreads();
      if (i < task.key_slices && task.key_slices > 1) bring_keys(key_part * slice);
      if (i < task.value_slices && task.value_slices > 1) bring_values(head, value_part * slice);
      bring(q, head, begin, key_part, value_part);
      commit_copies();
      wait_for_copies<0>();
      if (i < task.key_slices) {
        if (task.key_slices > 1) settle<Product, slice, tile_rows>(k, scores.k);
        settle<Product, slice, step>(q, scores.q);
      }
      if (i < task.value_slices) {
        if (task.value_slices > 1) settle_values<Product, slice, tile_rows>(v, task);
        settle<Product, slice, step>(dy, task.dy);
      }
      __syncthreads();
      if (!busy) continue;
      if (i < task.key_slices) dots<Product, slice>(s, k + own, q);
      if (i < task.value_slices) dots<Product, slice>(dp, v + own, dy);
    }
  }

  /// Replaces the products s = k . q by tau dS, where tau is Scores::multiplier. Replaces the
  /// products dp = v . dy by P or, for ChaCAL, by (1 - gamma) P.
  __device__ __forceinline__ void compute_gradients(Products& s, Products& dp, Shifts& shifts,
                                                    int begin, int turn, float g) const {
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int query = 8 * c + 2 * lane_column() + j;
        const QueryFacts of = facts[turn][query];
#pragma unroll
        for (int e = j; e < 4; e += 2) {
          float shift = 0;
          if constexpr (shifted) shift = query_shifts[turn][query] - shifts.c[e / 2];
          const float p = weight_of<shifted>(s[c][e], of.factor, shift, of.log_sum);
          s[c][e] = (shifted ? 1.0f : of.tau) * p * (dp[c][e] - of.dot);
          dp[c][e] = p;
        }
      }
    }
    // A mask is applied if the first query is not after the tile's last key, if there are fewer
    // queries than `step` or fewer keys than tile_rows, or if attention has a window.
    const int first_position = scores.offset(at) + begin, count = at.queries - begin;
    if (first_position < tile.first + rows || count < step || rows < tile_rows ||
        scores.window > 0) {
      mask(s, dp, first_position, turn, g);
    }
    if constexpr (shifted) {
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const float tau = facts[turn][8 * c + 2 * lane_column() + j].tau;
#pragma unroll
          for (int e = j; e < 4; e += 2) {
            shifts.sums[e / 2] += s[c][e];
            s[c][e] *= tau;
          }
        }
      }
    }
    if (task.gamma) {
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) dp[c][e] *= 1 - g;
      }
    }
  }

  /// Sets P and dS to 0 where a query does not see a key. For ChaCAL, also corrects dS where query
  /// and key have the same position. There, dP is the computed product v . dy minus gamma times the
  /// query's `dot` (gradients.h).
  __device__ __forceinline__ void mask(Products& s, Products& dp, int first_position, int turn,
                                       float g) const {
    const int column = first_position + 2 * lane_column();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int key = tile.first + row + 8 * i;
      const int first = key - column, last = scores.last_position(key, at) - column;
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          const int query = 8 * c + j;
          float &p = dp[c][2 * i + j], &ds = s[c][2 * i + j];
          if (task.gamma && query == first) {
            const QueryFacts& of = facts[turn][query + 2 * lane_column()];
            ds -= (shifted ? 1.0f : of.tau) * p * g * of.dot;
          }
          const bool seen = query >= first && query <= last;
          p = seen ? p : 0.0f;
          ds = seen ? ds : 0.0f;
        }
      }
    }
  }

  /// Stores the gradients of the shifts (Scores::decay) of this thread's two keys. Each of the four
  /// lanes that share a key has a part of the key's sum of dS.
  __device__ __forceinline__ void put_shift(int head, const float (&sums)[2]) const {
    if (!task.dshift || part > 0) return;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int r = row + 8 * i, position = tile.first + r;
      float sum = -row_sum(sums[i]);
      if (r >= rows || lane_column() > 0) continue;
      if (position >= at.offset()) {
        sum += task.row_sums[(at.query + position - at.offset()) * scores.heads + head];
      }
      float* const to = task.dshift + (at.key + position) * scores.heads + head;
      *to = task.add_shift ? *to + sum : sum;
    }
  }

  __device__ __forceinline__ void finish(const float (&dk)[1][n][4], const float (&dv)[1][n][4],
                                         const Shifts& shifts) const {
    // The results overwrite k and v in shared memory. If no query sees these keys, last_head is
    // first_head, and run() has skipped its loop over heads, which contains the barriers. Other
    // threads may then still copy keys and values into k and v.
    if (first_head == last_head) __syncthreads();
    if (!busy) return;
    if (shifted && first_head == last_head) {
      for (int head = first_head; head < first_head + scores.group; ++head) {
        put_shift(head, shifts.sums);
      }
    }
    const std::int64_t first_row = at.key + tile.first + 16 * warp;
    const int count = rows - 16 * warp;
    if (task.dk && part < task.key_slices) {
      const float factors[1][2] = {{scores.scale, scores.scale}};
      store_rows<Product>(k + own, task.dk, first_row, count, key_head, part * slice, dk, factors);
    }
    if (task.dv && part < task.value_slices) {
      const float factors[1][2] = {{1, 1}};
      store_rows<Product>(v + own, task.dv, first_row, count, key_head, part * slice, dv, factors);
    }
  }
};

template <class Product, int slice, bool shifted, bool ahead>
__global__ void __launch_bounds__(attention_threads, 2 - blocks_on(80, shifted ? 2 : 0) -
                                                         blocks_on(120, shifted ? 2 : 0))
    key_gradients(GradientTask task) {
  using Block = KeyBlock<Product, slice, shifted, ahead>;
  __shared__ typename Block::Facts facts;
  __shared__ typename Block::QueryShifts query_shifts;
  const Block block(task, facts, query_shifts);
  if (block.rows > 0) block.run();
}

}  // namespace

void launch_key_gradients(CudaBackend& backend, Math math, const Scores& scores,
                          GradientTask task) {
  visit_gradients(math, scores, task, [&](auto product, auto size, auto shift) {
    using Kind = decltype(product);
    constexpr int slice = decltype(size)::value;
    choose_steps<Kind, slice>(backend.device(), [&](auto ahead, std::size_t bytes) {
      launch(backend.stream(),
             {tile_slots(scores.k.data.rows(), scores.queries.count(), tile_rows), scores.k.heads,
              std::max(task.key_slices, task.value_slices)},
             attention_threads, bytes,
             &key_gradients<Kind, slice, decltype(shift)::value, decltype(ahead)::value>, task);
    });
  });
}

}  // namespace longhand::cuda
