#include "cuda/attention/gradients.h"

namespace longhand::cuda {
namespace {

/// The numbers of one query that the kernel for dk and dv needs. `factor` is scale log2 e times
/// Scores::multiplier. `tau` is Scores::multiplier, times the query's gain if the task has gains.
/// `log_sum` is the logarithm of the softmax denominator, times log2 e. `dot` is the query's entry
/// of GradientTask::row_dots.
struct alignas(16) QueryFacts {
  float factor, log_sum, tau, dot;
};

/// Computes dk and dv for one tile of keys:
///   dk_j = scale sum_i tau_i dS_ij q_i;  dv_j = sum_i P_ij dy_i,
/// where tau is Scores::multiplier. For ChaCAL, dy is the solution W of its backward system, and
/// dv_j is also multiplied by 1 - gamma. The sums include all query heads that read key head
/// blockIdx.y. Scores are transposed: each row is a key. If the scores have shifts (Scores::decay),
/// the block also computes the gradients of its keys' shifts for each query head. Its phases are
/// member functions, in the order in which run() calls them. For wide heads (wide.h), the block
/// computes up to wide_columns columns of either dk or dv.
template <class Product, int slice, Steps steps, bool shifted>
struct KeyBlock {
  using Element = typename Product::Element;
  using Tiles = WideTiles<Product>;
  static constexpr bool wide = steps == Steps::wide;
  static constexpr int block_rows = gradient_rows<steps>;
  static constexpr int step = gradient_step<Product, slice, steps>;
  // for each warp, in groups of 8: n columns of dk or dv, and m queries of a step
  static constexpr int n = wide ? Tiles::slices * Tiles::n : slice / 8;
  static constexpr int m = wide ? 2 : step / 8;
  static constexpr int stride = Product::stride(slice);
  /// The QueryFacts of the queries of the current step of the main loop and of the next step.
  using Facts = QueryFacts[2][step];
  // the shifts (Scores::decay) of the queries of the current step of the main loop and of the next
  // step
  using QueryShifts = float[2][shifted ? step : 1];
  using Products = float[m][4];
  using Result = float[1][n][4];
  /// c: the shifts (Scores::decay) of this thread's two keys; sums: for each of these keys, the sum
  /// of dS over the queries.
  struct Shifts {
    float c[2] = {0, 0}, sums[2] = {0, 0};
  };

  const GradientTask& task;
  const ScoresView& scores;
  Facts& facts;
  QueryShifts& query_shifts;
  // part: index of this block's part of the columns of dk or dv; 0 unless heads are wide
  const int key_head, part;
  const Tile tile;
  const SegmentView at;
  // Tiles in shared memory, not used for wide heads (WideTiles). k and v: the tile's keys and
  // values. ring: the queries, and their dy, of one or two steps of the main loop.
  Element *const k, *const v, *const ring;
  const int rows;           // number of keys in the tile; not positive if this block has no tile
  const int warp_row, row;  // indices of the warp's and this thread's first key in the tile
  const int own;            // offset, in entries, of the warp's first row in a tile
  // index, in the queries of a step, of the first query of the warp's products
  const int warp_query;
  const bool busy;  // false if the warp has no key
  // The queries first_query .. last_query - 1 include all queries that see a key of this tile. The
  // block processes them once for each query head, first_head .. last_head - 1.
  const int first_query, last_query, first_head, last_head;

  __device__ __forceinline__ KeyBlock(const GradientTask& of, Facts& of_queries,
                                      QueryShifts& their_shifts)
      : task(of),
        scores(of.scores),
        facts(of_queries),
        query_shifts(their_shifts),
        key_head(static_cast<int>(blockIdx.y)),
        part(wide ? static_cast<int>(blockIdx.z) / 2 : 0),
        tile(tile_at(scores.segments.key_begin, scores.segments.count, block_rows, blockIdx.x)),
        at(scores.segments[tile.segment]),
        k(shared_memory<Element>()),
        v(k + block_rows * stride),
        ring(v + block_rows * stride),
        rows(min(block_rows, at.keys - tile.first)),
        warp_row(16 * (wide ? wide_band() : warp_index())),
        row(warp_row + lane_row()),
        own(warp_row * stride),
        warp_query(wide ? 16 * wide_quarter() : 0),
        busy(warp_row < rows),
        first_query(max(0, tile.first - scores.offset(at)) / step * step),
        last_query(end_of_queries()),
        first_head(key_head * scores.group),
        last_head(first_query < last_query ? first_head + scores.group : first_head) {}

  __device__ __forceinline__ int end_of_queries() const {
    if (scores.window == 0) return at.queries;
    return static_cast<int>(
        min(std::int64_t{at.queries}, tile.first + rows - 1 + scores.window - at.offset()));
  }

  /// The queries of one step of the main loop, and the position of this step in the arrays of
  /// facts.
  struct Step {
    int head, begin, turn;
  };
  __device__ __forceinline__ bool exists(const Step& queries) const {
    return queries.head < last_head;
  }
  __device__ __forceinline__ Step after(const Step& queries) const {
    const bool goes_on = queries.begin + step < last_query;
    return {goes_on ? queries.head : queries.head + 1, goes_on ? queries.begin + step : first_query,
            1 - queries.turn};
  }

  __device__ __forceinline__ void run() const {
    Shifts shifts;
    Result dk, dv;
    clear(dk[0]);
    clear(dv[0]);
    load_first();
    int now = 0;  // offset of this step's queries and dy in `ring`
    for (Step queries{first_head, first_query, 0}; exists(queries);) {
      const Step next = after(queries);
      const float g = task.gamma ? task.gamma[queries.head * task.gamma_step] : 0.0f;
      if (shifted && queries.begin == first_query) start_shifts(shifts, queries.head);
      Element *const q = ring + now, *const dy = q + step * stride;
      now = steps == Steps::ahead ? 2 * step * stride - now : now;
      const QueryFacts coming = facts_of(next);
      const float coming_shift = shift_of_query(next);
      Products s, dp;
      clear(s);
      clear(dp);
      if (task.gamma && queries.begin == first_query) {
        __syncthreads();
        bring_values(queries.head);
      }
      multiply(s, dp, q, ring + now, next);
      store_facts(next.turn, coming, coming_shift);
      if (busy) {
        compute_gradients(s, dp, shifts, queries, g);
        if (shifted) add_shift_sums(shifts, s, queries.turn);
        if (task.dv) mix<Product>(dv[0], dp, dy);
        if (task.dk) mix<Product>(dk[0], s, q);
      }
      if (steps != Steps::ahead && exists(next)) {
        __syncthreads();
        bring(q, next);
        commit_copies();
      }
      if (shifted && next.head != queries.head && busy) put_shift(queries.head, shifts.sums);
      queries = next;
    }
    finish(dk, dv, shifts);
  }

  /// The same as run(), for wide heads (wide.h). Computes dv if `values` is set, otherwise dk and
  /// the gradients of the shifts.
  template <bool values>
  __device__ __forceinline__ void run_wide() const {
    Shifts shifts;
    Result sums;
    clear(sums[0]);
    Tiles tiles;
    const int first_key = static_cast<int>(at.key), first_query_row = static_cast<int>(at.query);
    const HeadRows keys{scores.k, first_key + tile.first, rows, key_head};
    const auto rows_of = [&](const HeadsView& x, const Step& queries) {
      const int count = min(step, at.queries - queries.begin);
      return HeadRows{x, first_query_row + queries.begin, count, queries.head};
    };
    const int first_slice = part * Tiles::slices;
    const int slices = values ? task.value_slices : task.key_slices;
    const HeadsView& to = values ? task.dv : task.dk;
    if (first_slice >= slices || !(to || (!values && task.dshift))) return;
    Step queries{first_head, first_query, 0};
    if (exists(queries)) tiles.bring(keys, rows_of(scores.q, queries), 0);
    commit_copies();
    store_facts(0, facts_of(queries), shift_of_query(queries));
    while (exists(queries)) {
      const Step next = after(queries);
      const float g = task.gamma ? task.gamma[queries.head * task.gamma_step] : 0.0f;
      if (shifted && queries.begin == first_query) start_shifts(shifts, queries.head);
      const HeadRows q_rows = rows_of(scores.q, queries), dy_rows = rows_of(task.dy, queries);
      const ValueRows v_rows{task, at, tile.first, rows, queries.head};
      const QueryFacts coming = facts_of(next);
      const float coming_shift = shift_of_query(next);
      Products s, dp;
      clear(s);
      clear(dp);
      tiles.multiply(s, keys, q_rows, task.key_slices, busy, [&] {
        if constexpr (values) {
          tiles.bring(dy_rows, first_slice);
        } else {
          tiles.bring(v_rows, dy_rows, 0);
        }
      });
      if constexpr (!values) {
        tiles.multiply(dp, v_rows, dy_rows, task.value_slices, busy,
                       [&] { tiles.bring(q_rows, first_slice); });
      }
      store_facts(next.turn, coming, coming_shift);
      if (busy) compute_gradients(s, dp, shifts, queries, g);
      typename Tiles::Weights weights;
      tiles.exchange(weights, values ? dp : s);
      if (shifted && !values) add_shift_sums(shifts, weights[0], queries.turn);
      tiles.mix(sums, weights, values ? dy_rows : q_rows, first_slice, slices, busy, [&] {
        if (exists(next)) tiles.bring(keys, rows_of(scores.q, next), 0);
      });
      if (shifted && !values && next.head != queries.head && busy) {
        put_shift(queries.head, shifts.sums);
      }
      queries = next;
    }
    if (!values) put_shifts_of_unseen(shifts);
    const float factor = values ? 1.0f : scores.scale;
    const float factors[1][2] = {{factor, factor}};
    if (to) tiles.store(to, at.key + tile.first, rows, key_head, part, sums, factors);
  }

  __device__ __forceinline__ void bring_values(int head) const {
    stage_values<Product, slice, block_rows>(v, task, at, tile.first, rows, head, 0);
  }
  /// Starts to copy the queries of a step and their rows of dy.
  __device__ __forceinline__ void bring(Element* q, const Step& queries) const {
    const int count = min(step, at.queries - queries.begin);
    const std::int64_t first = at.query + queries.begin;
    stage<Product, slice, step>(q, scores.q, first, count, queries.head, 0);
    stage<Product, slice, step>(q + step * stride, task.dy, first, count, queries.head, 0);
  }
  __device__ __forceinline__ void load_first() const {
    const Step queries{first_head, first_query, 0};
    stage<Product, slice, block_rows>(k, scores.k, at.key + tile.first, rows, key_head, 0);
    if (!task.gamma) bring_values(first_head);
    if (exists(queries)) bring(ring, queries);
    commit_copies();
    store_facts(0, facts_of(queries), shift_of_query(queries));
    wait_for_copies<0>();
    settle<Product, slice, block_rows>(k, scores.k);
    settle_values<Product, slice, block_rows>(v, task);
  }

  /// The QueryFacts of the query that this thread loads for a step.
  __device__ __forceinline__ QueryFacts facts_of(const Step& queries) const {
    const int r = static_cast<int>(threadIdx.x);
    if (r >= min(step, at.queries - queries.begin) || !exists(queries)) return QueryFacts{};
    const std::int64_t query = at.query + queries.begin + r;
    const std::int64_t at_row = query * scores.heads + queries.head;
    const float tau = scores.tau_of(query, queries.head);
    return QueryFacts{scores.scale * tau * log2_of_e, task.log_sum[at_row] * log2_of_e,
                      !shifted && task.gain ? tau * task.gain[at_row] : tau, task.row_dots[at_row]};
  }
  /// The shift (Scores::decay) of the query that this thread loads for a step, or 0 if the scores
  /// have no shifts.
  __device__ __forceinline__ float shift_of_query(const Step& queries) const {
    const int r = static_cast<int>(threadIdx.x);
    if (!shifted || r >= min(step, at.queries - queries.begin) || !exists(queries)) return 0;
    return scores.shift_of(at.key + at.offset() + queries.begin + r, queries.head);
  }
  /// Stores the numbers of the query that this thread loads for a step. They overwrite numbers with
  /// the same `turn`. All warps have passed a barrier after they read those.
  __device__ __forceinline__ void store_facts(int turn, const QueryFacts& of, float shift) const {
    if (static_cast<int>(threadIdx.x) >= step) return;
    facts[turn][threadIdx.x] = of;
    if constexpr (shifted) query_shifts[turn][threadIdx.x] = shift;
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
  /// their dy were started before. If `steps` is ahead, starts the copies for the next step to
  /// `room`.
  __device__ __forceinline__ void multiply(Products& s, Products& dp, Element* q, Element* room,
                                           const Step& next) const {
    Element* const dy = q + step * stride;
    wait_for_copies<0>();
    settle<Product, slice, step>(q, scores.q);
    settle<Product, slice, step>(dy, task.dy);
    __syncthreads();
    if (steps == Steps::ahead && exists(next)) bring(room, next);
    commit_copies();
    if (!busy) return;
    dots<Product, slice>(s, k + own, q);
    dots<Product, slice>(dp, v + own, dy);
  }
  /// Replaces the warp's products s = k . q by dS, multiplied by QueryFacts::tau unless the scores
  /// have shifts. Replaces the products dp = v . dy by P; for ChaCAL, P is multiplied by 1 - gamma.
  __device__ __forceinline__ void compute_gradients(Products& s, Products& dp, const Shifts& shifts,
                                                    const Step& queries, float g) const {
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int query = warp_query + 8 * c + 2 * lane_column() + j;
        const QueryFacts of = facts[queries.turn][query];
#pragma unroll
        for (int e = j; e < 4; e += 2) {
          float shift = 0;
          if constexpr (shifted) shift = query_shifts[queries.turn][query] - shifts.c[e / 2];
          const float p = weight_of<shifted>(s[c][e], of.factor, shift, of.log_sum);
          s[c][e] = (shifted ? 1.0f : of.tau) * p * (dp[c][e] - of.dot);
          dp[c][e] = p;
        }
      }
    }
    // A mask is applied if the first query is not after the tile's last key, if there are fewer
    // queries than `step` or fewer keys than block_rows, or if attention has a window.
    const int first_position = scores.offset(at) + queries.begin;
    const int count = at.queries - queries.begin;
    if (first_position < tile.first + rows || count < step || rows < block_rows ||
        scores.window > 0) {
      mask(s, dp, first_position, queries.turn, g);
    }
    if (task.gamma) {
#pragma unroll
      for (int c = 0; c < m; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) dp[c][e] *= 1 - g;
      }
    }
  }

  /// Adds dS to the sums of the thread's two keys, and multiplies dS by tau. ds contains dS for
  /// 8 `count` queries of a step, from the first one on.
  template <int count>
  __device__ __forceinline__ void add_shift_sums(Shifts& shifts, float (&ds)[count][4],
                                                 int turn) const {
#pragma unroll
    for (int c = 0; c < count; ++c) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const float tau = facts[turn][8 * c + 2 * lane_column() + j].tau;
#pragma unroll
        for (int e = j; e < 4; e += 2) {
          shifts.sums[e / 2] += ds[c][e];
          ds[c][e] *= tau;
        }
      }
    }
  }

  /// Sets P and dS to 0 where a query does not see a key. For ChaCAL, also corrects dS where query
  /// and key have the same position. There, dP is the computed product v . dy minus gamma times the
  /// query's `dot` (gradients.h).
  __device__ __forceinline__ void mask(Products& s, Products& dp, int first_position, int turn,
                                       float g) const {
    const int query_of_lane = warp_query + 2 * lane_column();
    const int column = first_position + query_of_lane;
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
            const QueryFacts& of = facts[turn][query_of_lane + query];
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
    // The four warps of a band of a wide block have the same sums.
    if (!task.dshift || part > 0 || (wide && wide_quarter() > 0)) return;
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

  /// The same as put_shift() for all query heads, if no query sees the tile's keys.
  __device__ __forceinline__ void put_shifts_of_unseen(const Shifts& shifts) const {
    if constexpr (shifted) {
      if (first_head < last_head || !busy) return;
      for (int head = first_head; head < first_head + scores.group; ++head) {
        put_shift(head, shifts.sums);
      }
    }
  }

  __device__ __forceinline__ void finish(const Result& dk, const Result& dv,
                                         const Shifts& shifts) const {
    // The results overwrite k and v in shared memory. If no query sees these keys, last_head is
    // first_head, and run() has skipped its loop over heads, which contains the barriers. Other
    // threads may then still copy keys and values into k and v.
    if (first_head == last_head) __syncthreads();
    if (!busy) return;
    put_shifts_of_unseen(shifts);
    const std::int64_t first_row = at.key + tile.first + warp_row;
    const int count = rows - warp_row;
    if (task.dk) {
      const float factors[1][2] = {{scores.scale, scores.scale}};
      store_rows<Product>(k + own, task.dk, first_row, count, key_head, 0, dk, factors);
    }
    if (task.dv) {
      const float factors[1][2] = {{1, 1}};
      store_rows<Product>(v + own, task.dv, first_row, count, key_head, 0, dv, factors);
    }
  }
};

template <class Product, int slice, Steps steps, bool shifted>
__global__ void __launch_bounds__(attention_threads, 2 - blocks_on(80, shifted ? 2 : 0) -
                                                         blocks_on(120, shifted ? 2 : 0))
    key_gradients(GradientTask task) {
  using Block = KeyBlock<Product, slice, steps, shifted>;
  __shared__ typename Block::Facts facts;
  __shared__ typename Block::QueryShifts query_shifts;
  const Block block(task, facts, query_shifts);
  if (block.rows > 0) block.run();
}
/// Blocks with an even index of the z axis compute dk, and those with an odd index compute dv.
template <class Product, bool shifted>
__global__ void __launch_bounds__(wide_threads, 1) wide_key_gradients(GradientTask task) {
  using Block = KeyBlock<Product, WideSlice<Product>::value, Steps::wide, shifted>;
  __shared__ typename Block::Facts facts;
  __shared__ typename Block::QueryShifts query_shifts;
  const Block block(task, facts, query_shifts);
  if (block.rows <= 0) return;
  if (blockIdx.z % 2 == 0) {
    block.template run_wide<false>();
  } else {
    block.template run_wide<true>();
  }
}
template <class Product, int slice, Steps steps, bool shifted>
constexpr auto key_kernel() {
  if constexpr (steps == Steps::wide) {
    return &wide_key_gradients<Product, shifted>;
  } else {
    return &key_gradients<Product, slice, steps, shifted>;
  }
}

}  // namespace

void launch_key_gradients(CudaBackend& backend, Math math, const Scores& scores,
                          GradientTask task) {
  visit_gradients(
      backend, math, scores, task, [&](auto product, auto size, auto variant, auto shift) {
        using Kind = decltype(product);
        constexpr int slice = decltype(size)::value;
        constexpr Steps steps = decltype(variant)::value;
        const std::int64_t slots =
            tile_slots(scores.k.data.rows(), scores.queries.count(), gradient_rows<steps>);
        const int parts = steps == Steps::wide
                              ? 2 * wide_parts(std::max<std::int64_t>(scores.q.width, task.v.width))
                              : 1;
        launch(backend.stream(), {slots, scores.k.heads, parts}, gradient_threads<steps>,
               gradient_bytes<Kind, slice, steps>,
               key_kernel<Kind, slice, steps, decltype(shift)::value>(), task);
      });
}

}  // namespace longhand::cuda
