#pragma once

#include "core/contract/attention.h"
#include "cuda/attention/rule_walk.h"
#include "cuda/attention/tickets.h"

/// Gradients of the attention rules other than softmax. Each rule defines a walker, the state of
/// one query while its keys are processed (rule_walk.h). There are two kernels. In query_kernel,
/// which computes dq, a thread block has 64 queries and processes their keys as in the forward
/// pass. In key_kernel, which computes dk and dv, a thread block has 64 keys and processes the
/// queries that see them, 32 per step. Four threads per query process 16 of the 64 keys each.
///
/// In key_kernel, a rule whose weights depend on later keys (leftward = true) needs the state of
/// each query after all keys that follow the block's own 64 keys. The blocks of a segment therefore
/// pass these states on, through the array `states`. A block reads the states that the block of the
/// next 64 keys has stored, continues with its own keys, and stores the new states. It begins a
/// step only when the block of the next 64 keys has finished the same step. Blocks draw tiles of
/// keys by ticket (tickets.h), beginning with the last keys.
namespace longhand::cuda::walks {

struct RuleGradientTask {
  ScoresView scores;
  HeadsView v = {}, dy = {}, dq = {}, dk = {}, dv = {};
  float *dtau = nullptr, *dshift = nullptr;
  bool add_tau = false, add_shift = false;
  float* row_sums = nullptr;  // row sums of dS, [query rows, heads]; null if dshift is not required
  std::int32_t key_slices = 1, value_slices = 1;
  std::int64_t query_rows = 0;
  // State of each query after the keys processed so far, [slices, query rows, heads]. Used only for
  // rules whose weights depend on later keys.
  Pair<float>* states = nullptr;
  std::int32_t* progress = nullptr;
};

template <class Product>
constexpr std::size_t backward_bytes = sizeof(typename Product::Element) * 2 *
                                       (tile_entries<Product> + step_entries<Product>)+2 *
                                       sizeof(float) * std::max(walk_floats, wave_floats);

/// Two sums over the keys of a query that one thread processes: `ds` is the sum of dS, and
/// `products` the sum of dS times the product q . k.
struct GradientSums {
  float ds = 0, products = 0;
};

/// Processes a run of keys of one query, which begins with key `begin`. `count` is the number of
/// keys from `begin` to the end of the step: the run has at most run_keys of them, and none if
/// `count` is not positive. Entry n * stride of `s` and of `dp` belongs to key begin + n.
/// Replaces the products q . k in `s` by P, and dP in `dp` by dS. P and dS become 0 beyond the
/// `count` keys and for keys that the query does not see. Adds the terms of all these keys to
/// `sums`.
template <class Product, int lanes, class Walker>
__device__ void weigh_gradients(Walker& walker, const ScoresView& scores, int begin, int count,
                                float* s, float* dp, int stride, GradientSums& sums) {
  Run run = walker.run_of(scores, begin, count, s, stride);
  float g[run_keys];
#pragma unroll
  for (int n = 0; n < run_keys; ++n) g[n] = run.sees(n) ? dp[n * stride] : 0.0f;
  if constexpr (Walker::Formulas::leftward) {
    walker.template gradients<Product, lanes>(run, g);
  } else {
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      const Gradient of = run.sees(n) ? walker.gradient(run.scores[n], g[n]) : Gradient{0, 0};
      run.scores[n] = of.p;
      g[n] = of.ds;
    }
  }
#pragma unroll
  for (int n = 0; n < run_keys; ++n) {
    if (run.sees(n)) {
      sums.products += g[n] * s[n * stride];
      sums.ds += g[n];
    }
    s[n * stride] = run.scores[n];
    dp[n * stride] = g[n];
  }
}

/// Initializes a walker, the state of one query, for the backward pass of query number `query` of a
/// segment. If the segment has no such query, only sets walker.there to false.
template <class Walker>
__device__ void start_walk(Walker& walker, const ScoresView& scores,
                           const typename Walker::Tensors& tensors, const SegmentView& at,
                           int query, int head) {
  walker.find(scores, at, query, head);
  if (!walker.there) return;
  const std::int64_t entry = (at.query + query) * scores.heads + head;
  walker.start(scores, tensors, entry);
  walker.start_gradients(tensors, entry);
}

template <class Product, class Walker>
__global__ void __launch_bounds__(attention_threads)
    query_kernel(RuleGradientTask task, typename Walker::Tensors tensors) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  Element* const q = shared_memory<Element>();
  Element* const dy = q + tile_entries<Product>;
  Element *const k = dy + tile_entries<Product>, *const v = k + step_entries<Product>;
  auto* const s = reinterpret_cast<float*>(v + step_entries<Product>);
  float* const dp = s + walk_floats;

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const BlockQueries own = own_queries(scores.segments);
  const SegmentView& at = own.at;
  const int first = own.first, rows = own.rows, start = own.start;
  if (rows <= 0) return;
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows;
  const std::int64_t first_row = at.query + first;

  // query: index of this thread's query in the tile. run_begin: index, among the keys of a step, of
  // the first of the 16 keys that this thread processes.
  const int query = thread / query_lanes, run_begin = run_keys * run_index<query_lanes>();
  const int of_run = run_begin * walk_stride + query;

  Walker walker;
  GradientSums sums;
  start_walk(walker, scores, tensors, at, first + query, head);
  float dq[1][n][4];
  clear(dq[0]);
  const auto bring_queries = [&](int of) {
    fetch<Product, tile_rows>(q, scores.q, first_row, rows, head, of);
  };
  const auto bring_dy = [&](int of) {
    fetch<Product, tile_rows>(dy, task.dy, first_row, rows, head, of);
  };
  if (task.key_slices == 1) bring_queries(0);
  if (task.value_slices == 1) bring_dy(0);
  const int first_key = scores.first_key(start);
  bool goes_on = true;
  for (int end = start + rows; end > first_key && goes_on;) {
    const int begin = (end - 1) / steps * steps, count = end - begin;
    const auto bring_keys = [&](int of) {
      fetch<Product, steps>(k, scores.k, at.key + begin, count, key_head, of);
    };
    float x[m][4];
    dots_of_slices<Product>(x, dy, v, task.value_slices, busy, bring_dy, [&](int of) {
      fetch<Product, steps>(v, task.v, at.key + begin, count, key_head, of);
    });
    put_tile(dp, 1, walk_stride, x);
    dots_of_slices<Product>(x, q, k, task.key_slices, busy, bring_queries, bring_keys);
    put_tile(s, 1, walk_stride, x);
    __syncthreads();
    if (task.key_slices > 1) bring_keys(part);
    weigh_gradients<Product, query_lanes>(walker, scores, begin + run_begin, count - run_begin,
                                          s + of_run, dp + of_run, walk_stride, sums);
    goes_on = __syncthreads_or(walker.there && !walker.finished());
    if (busy) {
      get_tile(dp, 1, walk_stride, x);
      mix<Product>(dq[0], x, k);
    }
    end = begin;
  }

  const float dtau = scores.scale * sum_of_runs<query_lanes>(sums.products);
  const float row_sum_of_ds = sum_of_runs<query_lanes>(sums.ds);
  walker.template finish_gradients<query_lanes>();
  if (query < rows && run_begin == 0 && part == 0) {
    const std::int64_t entry = (first_row + query) * scores.heads + head;
    if (task.dtau) task.dtau[entry] = task.add_tau ? task.dtau[entry] + dtau : dtau;
    if (task.row_sums) task.row_sums[entry] = row_sum_of_ds;
    walker.store_gradients(tensors, entry);
  }
  if (!task.dq || !busy) return;
  float factors[1][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int r = row + lane_row() + 8 * i;
    factors[0][i] = scores.scale * scores.tau_of(first_row + r, head, r < rows);
  }
  __syncwarp();
  store_rows<Product>(q + row * Product::stride(slice), task.dq, first_row + row, rows - row, head,
                      part * slice, dq, factors);
}

/// The keys of a thread block: the keys first .. first + rows - 1 of a segment, for one key head
/// and one slice (`part`) of its columns.
struct KeyTile {
  SegmentView at;
  int first, rows, key_head, part;
};

/// A thread block that computes dk and dv of a tile of keys. Its steps are member functions, in the
/// order in which run() calls them.
template <class Product, class Walker>
struct KeyTileBlock {
  using Element = typename Product::Element;
  static constexpr int n = slice / 8, m = steps / 8;
  static constexpr bool leftward = Walker::Formulas::leftward;

  const RuleGradientTask& task;
  const typename Walker::Tensors& tensors;
  const KeyTile& tile;
  const ScoresView& scores;
  const SegmentView& at;
  // In shared memory: keys and values of the tile, queries and dy of the current step.
  Element *const k, *const v, *const q, *const dy;
  float *const s, *const dp;  // in shared memory: q . k and dy . v, later P and dS
  const int thread, row;      // row: the warp's first row in the tile
  // This thread's query in a step, its run of the tile's keys, and the place of the run in s and
  // dp.
  const int query, run_begin, of_run;
  const bool busy;       // false if the warp has no key
  const bool has_shift;  // true if this block computes dshift, the gradient of Scores::decay

  __device__ __forceinline__ KeyTileBlock(const RuleGradientTask& of,
                                          const typename Walker::Tensors& of_rule,
                                          const KeyTile& of_keys)
      : task(of),
        tensors(of_rule),
        tile(of_keys),
        scores(of.scores),
        at(of_keys.at),
        k(shared_memory<Element>()),
        v(k + tile_entries<Product>),
        q(v + tile_entries<Product>),
        dy(q + step_entries<Product>),
        s(reinterpret_cast<float*>(dy + step_entries<Product>)),
        dp(s + wave_floats),
        thread(static_cast<int>(threadIdx.x)),
        row(16 * warp_index()),
        query(thread / key_lanes),
        run_begin(run_keys * run_index<key_lanes>()),
        of_run(run_index<key_lanes>() * wave_run + query),
        busy(row < tile.rows),
        has_shift(task.dshift && tile.part == 0) {}

  /// Computes and stores dk and dv of the tile. In each step it processes 32 queries. `done` points
  /// to the number of steps that are finished for this tile of keys. `behind` points to the same
  /// number for the tile of the next 64 keys, or is null if this is the last tile.
  __device__ __forceinline__ void run(std::int32_t* done, const std::int32_t* behind) const {
    float dk[1][n][4], dv[1][n][4];
    clear(dk[0]);
    clear(dv[0]);
    if (task.key_slices == 1) bring_keys(0);
    if (task.value_slices == 1) bring_values(0);
    const int first_query = first_query_of(tile.first);
    const int last_query = scores.last_position(tile.first + tile.rows - 1, at) - at.offset() + 1;
    const int steps_of_head = (at.queries + steps - 1) / steps;
    for (int g = 0; g < scores.group; ++g) {
      const int head = tile.key_head * scores.group + g;
      float shift_sum = 0;
      for (int begin = first_query; begin < last_query; begin += steps) {
        const int number = g * steps_of_head + begin / steps;
        // True if this tile needs no states of these queries from the tile of the next 64 keys:
        // either the weights of the rule do not depend on later keys, or no query of this step sees
        // a key of a later tile.
        const bool first_of_walk =
            !leftward || !behind || begin < first_query_of(tile.first + tile_rows);
        if (!first_of_walk) wait_for(behind, number + 1);
        Walker walker;
        start_walk(walker, scores, tensors, at, begin + query, head);
        if constexpr (leftward) {
          if (!first_of_walk && walker.there) load_state(walker, head, begin);
        }
        if (__syncthreads_or(walker.there && !walker.finished())) {
          add_step(dk, dv, shift_sum, walker, head, begin);
        }
        if constexpr (leftward) {
          if (walker.there && run_begin == 0) store_state(walker, head, begin);
          publish(done, number + 1);
        }
      }
      if (has_shift) store_shift_gradient(head, shift_sum);
    }
    if constexpr (leftward) {
      publish(done, scores.group * steps_of_head);
    } else {
      // The results overwrite k and v in shared memory. If no query sees these keys, the block has
      // not passed a barrier yet, and other threads may still copy keys and values there.
      __syncthreads();
    }
    store(dk, dv);
  }

  /// Queries are processed in steps of 32 queries. Returns the first query of the step that
  /// contains the first query which sees `key`.
  __device__ __forceinline__ int first_query_of(int key) const {
    return max(0, key - at.offset()) / steps * steps;
  }
  __device__ __forceinline__ void bring_keys(int of) const {
    fetch<Product, tile_rows>(k, scores.k, at.key + tile.first, tile.rows, tile.key_head, of);
  }
  __device__ __forceinline__ void bring_values(int of) const {
    fetch<Product, tile_rows>(v, task.v, at.key + tile.first, tile.rows, tile.key_head, of);
  }

  /// Address, in task.states, of the state of this thread's query. Blocks with other keys also read
  /// and write this state.
  __device__ __forceinline__ volatile Pair<float>* state_of(int head, int begin) const {
    const std::int64_t row_of_query = at.query + begin + query;
    return task.states + ((tile.part * task.query_rows + row_of_query) * scores.heads + head);
  }
  __device__ __forceinline__ void load_state(Walker& walker, int head, int begin) const {
    const volatile Pair<float>* const from = state_of(head, begin);
    walker.resume({from->first, from->second});
  }
  __device__ __forceinline__ void store_state(const Walker& walker, int head, int begin) const {
    volatile Pair<float>* const to = state_of(head, begin);
    const Pair<float> state = walker.state();
    to->first = state.first;
    to->second = state.second;
  }

  /// Adds the terms of 32 queries, from query `begin` on, to dk and dv. If has_shift is set, also
  /// sums dS of this thread's key over these queries, and adds the sum to shift_sum.
  __device__ __forceinline__ void add_step(float (&dk)[1][n][4], float (&dv)[1][n][4],
                                           float& shift_sum, Walker& walker, int head,
                                           int begin) const {
    const int count = min(steps, at.queries - begin), part = tile.part;
    const auto bring_queries = [&](int of) {
      fetch<Product, steps>(q, scores.q, at.query + begin, count, head, of);
    };
    const auto bring_dy = [&](int of) {
      fetch<Product, steps>(dy, task.dy, at.query + begin, count, head, of);
    };
    float x[m][4];
    dots_of_slices<Product>(
        x, v, dy, task.value_slices, busy, [&](int of) { bring_values(of); }, bring_dy);
    put_tile(dp + own_gap(), wave_stride, 1, x);
    dots_of_slices<Product>(
        x, k, q, task.key_slices, busy, [&](int of) { bring_keys(of); }, bring_queries);
    put_tile(s + own_gap(), wave_stride, 1, x);
    __syncthreads();
    if (task.key_slices > 1 && part < task.key_slices) bring_queries(part);
    if (task.value_slices > 1 && part < task.value_slices) bring_dy(part);
    GradientSums unused;
    weigh_gradients<Product, key_lanes>(walker, scores, tile.first + run_begin,
                                        tile.rows - run_begin, s + of_run, dp + of_run, wave_stride,
                                        unused);
    if (has_shift) {
      __syncthreads();
      const float* const of_key = dp + thread * wave_stride + thread / run_keys * wave_gap;
      for (int i = 0; thread < tile.rows && i < steps; ++i) shift_sum += of_key[i];
      __syncthreads();
    }
    if (scores.tau) {
      const float tau = scores.tau_of(at.query + begin + query, head, query < count);
#pragma unroll
      for (int i = 0; i < run_keys; ++i) dp[of_run + i * wave_stride] *= tau;
    }
    __syncthreads();
    if (!busy) return;
    get_tile(s + own_gap(), wave_stride, 1, x);
    if (part < task.value_slices) mix<Product>(dv[0], x, dy);
    get_tile(dp + own_gap(), wave_stride, 1, x);
    if (part < task.key_slices) mix<Product>(dk[0], x, q);
  }

  /// In s and dp, a warp's 16 rows are one run of keys, and a gap of wave_gap floats follows each
  /// run. Returns the total length of the gaps before this warp's run.
  __device__ __forceinline__ static int own_gap() { return wave_gap * warp_index(); }

  /// Stores the gradient of the shift (Scores::decay) of this thread's key. It is the sum of dS
  /// over all keys of the query at the same position, minus `sum`, the sum of dS over the queries
  /// of this key.
  __device__ __forceinline__ void store_shift_gradient(int head, float sum) const {
    const int position = tile.first + thread;
    if (thread >= tile.rows) return;
    sum = -sum;
    if (task.row_sums && position >= at.offset()) {
      sum += task.row_sums[(at.query + position - at.offset()) * scores.heads + head];
    }
    float* const to = task.dshift + (at.key + position) * scores.heads + head;
    *to = task.add_shift ? *to + sum : sum;
  }

  __device__ __forceinline__ void store(const float (&dk)[1][n][4],
                                        const float (&dv)[1][n][4]) const {
    if (!busy) return;
    const std::int64_t first_row = at.key + tile.first + row;
    const int count = tile.rows - row, part = tile.part;
    if (task.dk && part < task.key_slices) {
      const float factors[1][2] = {{scores.scale, scores.scale}};
      store_rows<Product>(k + row * Product::stride(slice), task.dk, first_row, count,
                          tile.key_head, part * slice, dk, factors);
    }
    if (task.dv && part < task.value_slices) {
      const float factors[1][2] = {{1, 1}};
      store_rows<Product>(v + row * Product::stride(slice), task.dv, first_row, count,
                          tile.key_head, part * slice, dv, factors);
    }
  }
};

template <class Product, class Walker>
__global__ void __launch_bounds__(attention_threads,
                                  blocks_on(80, 2) +
                                      blocks_on(90, std::is_same_v<Product, ExactProduct> ? 2 : 0))
    key_kernel(RuleGradientTask task, typename Walker::Tensors tensors) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads / task.scores.group;
  const int parts = max(task.key_slices, task.value_slices);
  const int ranks = most_tiles(segments.key_length, segments.count);
  for (;;) {
    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const SegmentView at = segments[next.segment];
    const int tiles = (at.keys + tile_rows - 1) / tile_rows, tile = tiles - 1 - next.rank;
    if (tile < 0) continue;
    const std::int64_t slot = at.key / tile_rows + next.segment + tile;
    std::int32_t* const done = task.progress + 1 + (slot * heads + next.head) * parts + next.slice;
    const std::int64_t slot_step = std::int64_t{heads} * parts;
    const int first = tile * tile_rows;
    const KeyTile keys{at, first, min(tile_rows, at.keys - first), next.head, next.slice};
    KeyTileBlock<Product, Walker>(task, tensors, keys)
        .run(done, tile + 1 < tiles ? done + slot_step : nullptr);
  }
}

/// Computes an AttentionBackward op. Walker is the type that applies the op's rule: the state of
/// one query while its keys are processed (rule_walk.h). `own_gradient` is true if a gradient of
/// the rule's own tensors is required.
template <class Walker>
void gradients_by_walk(CudaBackend& backend, const AttentionBackward& op,
                       const typename Walker::Tensors& tensors, bool own_gradient = false) {
  const Scores& scores = op.scores;
  const std::int64_t rows = scores.q.data.rows(), heads = scores.q.heads;
  const auto target = [](const Target& x) {
    return x ? x.tensor.data<float>() : static_cast<float*>(nullptr);
  };
  RuleGradientTask task{.scores = view(scores),
                        .v = view(op.v),
                        .dy = view(op.dy),
                        .dq = view(op.dq),
                        .dk = view(op.dk),
                        .dv = view(op.dv),
                        .dtau = target(op.dscores.multiplier),
                        .dshift = target(op.dscores.decay),
                        .add_tau = op.dscores.multiplier.add,
                        .add_shift = op.dscores.decay.add,
                        .key_slices = slices(scores.q.width, slice),
                        .value_slices = slices(op.v.width, slice),
                        .query_rows = rows};
  const std::int64_t count = scores.queries.count();
  const std::int64_t query_slots = tile_slots(rows, count, tile_rows);
  const std::int64_t key_slots = tile_slots(scores.k.data.rows(), count, tile_rows);
  const std::int64_t parts = std::max(task.key_slices, task.value_slices);
  Tensor row_sums;
  if (op.dscores.decay) {
    row_sums = Tensor(backend, {std::max<std::int64_t>(1, rows), heads}, DType::f32);
    task.row_sums = row_sums.data<float>();
  }
  choose_product<Walker>(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    if (op.dq || op.dscores.multiplier || own_gradient || task.row_sums) {
      launch(backend.stream(), {query_slots, heads, task.key_slices}, attention_threads,
             backward_bytes<Kind>, &query_kernel<Kind, Walker>, task, tensors);
    }
    if (!op.dk && !op.dv && !op.dscores.decay) return;
    const std::int64_t stored = Walker::Formulas::leftward ? parts * rows * heads : 0;
    const Tensor states(backend, {std::max<std::int64_t>(1, 2 * stored)}, DType::f32);
    const Tensor progress(backend, {progress_words(key_slots, scores.k.heads, parts)}, DType::i32);
    backend.stream().zero(progress.address(), progress.bytes());
    task.states = static_cast<Pair<float>*>(states.address());
    task.progress = progress.data<std::int32_t>();
    launch(backend.stream(), ticket_blocks(backend, key_slots * scores.k.heads * parts),
           attention_threads, backward_bytes<Kind>, &key_kernel<Kind, Walker>, task, tensors);
  });
}

}  // namespace longhand::cuda::walks
