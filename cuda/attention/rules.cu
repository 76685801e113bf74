#include "cuda/attention/rules.h"

#include <algorithm>

#include "cuda/attention/chain.h"
#include "cuda/attention/run.h"

/// Attention by rules other than softmax. A block takes the products of a tile of scores as the
/// softmax kernels do and puts them into shared memory, where a thread for each query walks along
/// its keys, from the nearest on, with the rule's own text. Weights go back to registers for the
/// products that follow.
///
/// Forward and for dq a block has 64 queries and goes through keys from the last to the first, 32
/// at a time, until no query has anything left. For dk and dv a block has 64 keys and goes through
/// the queries after them; what a query's walk knows at the tile's last key lies in `walked`, where
/// the block of the keys behind left it, and is moved on there. Blocks take tiles by ticket, the
/// last keys first (chain.h), and each is one step behind the one that it waits for.
///
/// Entmax has no walk: its threads look for the threshold of a row, for which scores are made anew
/// in each step, and its weights are made from that. D comes from the products that make dP, in
/// their order, so that a key with all of a row's weight has dP - D = 0.
///
/// Heads wider than a slice: as in gradients.h. Sums over slices go in one order everywhere, so
/// that a score has the same bits in all passes.
namespace longhand::cuda {
namespace {

constexpr int slice = 64, step_rows_of_rules = 32;
constexpr int steps = step_rows_of_rules;

struct RuleTask {
  ScoresView scores;
  HeadsView v = {}, y = {}, mean = {}, dy = {}, dq = {}, dk = {}, dv = {};
  float* log_sum = nullptr;
  const float* row_dots = nullptr;
  float *dtau = nullptr, *dpull = nullptr;
  bool add_tau = false, add_pull = false;
  std::int32_t key_slices = 1, value_slices = 1;
  std::int64_t query_rows = 0;
  Pair<float>* walked = nullptr;  // [slices, query rows, heads]
  std::int32_t* progress = nullptr;
};

/// A query on its way along its keys.
template <Rule rule>
struct Walker {
  float factor = 0, pull = 0, log_sum = 0, d = 0;
  int position = -1;
  bool there = false;
  float known = rule == Rule::stick ? 1.0f : 0.0f;  // what is left; the keys kept
  float sum = 0;    // of stick-breaking the rest of D; of TRA dpull, and forward the weights
  float level = 0;  // of TRA forward: the largest logit
  float raw = 0;    // the sum of dS times q . k
  int number = 0;   // of entmax forward: keys that have a weight

  __device__ void start(const ScoresView& scores, const SegmentView& at, int query, int head) {
    there = query < at.queries;
    if (!there) {
      if (rule == Rule::stick) known = 0;
      return;
    }
    const std::int64_t row = at.query + query;
    position = at.offset() + query;
    factor = scores.scale * scores.tau_of(row, head) * (rule == Rule::entmax ? 0.5f : log2_of_e);
    if (rule == Rule::tra) pull = scores.pull[row * scores.heads + head] * log2_of_e;
  }
  __device__ void start_back(const RuleTask& task, const SegmentView& at, int query, int head) {
    start(task.scores, at, query, head);
    if (!there) return;
    const std::int64_t entry = (at.query + query) * task.scores.heads + head;
    d = task.row_dots[entry];
    if (rule == Rule::stick) sum = d;
    if (rule != Rule::stick) log_sum = task.log_sum[entry];
  }
  __device__ bool sees(const ScoresView& scores, int key) const {
    return there && visible(scores, position, key) && (!strict(rule) || key < position);
  }
  __device__ bool spent() const { return rule == Rule::stick && known < rules::Stick::spent; }

  /// The scores s[key stride] of the keys begin .. begin + count - 1 to weights. Gives what the
  /// sums so far shrink by.
  __device__ float weigh(const ScoresView& scores, int begin, int count, float* s, int stride) {
    float top = level;
    for (int key = count - 1; key >= 0; --key) {
      float& x = s[key * stride];
      if constexpr (rule == Rule::stick) {
        x = sees(scores, begin + key) ? rules::Stick::weigh(x * factor, known) : 0.0f;
      } else {
        const bool first = known == 0;
        x = rules::Tra::logit(sees(scores, begin + key) ? x * factor : 0.0f, pull, known);
        if (known > 0) top = first ? x : fmaxf(top, x);
      }
    }
    if constexpr (rule == Rule::stick) return 1;
    const float shrink = power_of_two(level - top);
    level = top;
    sum *= shrink;
    for (int key = 0; key < count; ++key) {
      float& x = s[key * stride];
      x = power_of_two(x - level);
      sum += x;
    }
    return shrink;
  }

  /// The largest half of a score, or the sums of weights and of their squares.
  __device__ void highest(const ScoresView& scores, int begin, int count, const float* s,
                          int stride) {
    for (int key = 0; key < count; ++key) {
      if (sees(scores, begin + key)) level = fmaxf(level, s[key * stride] * factor);
    }
  }
  __device__ void add_up(const ScoresView& scores, int begin, int count, const float* s,
                         int stride) {
    for (int key = 0; key < count; ++key) {
      if (!sees(scores, begin + key)) continue;
      const float w = rules::Entmax::weight(s[key * stride] * factor, level);
      sum += w;
      known += w * w;
      number += w > 0 ? 1 : 0;
    }
  }
  __device__ void weigh_roots(const ScoresView& scores, int begin, int count, float* s,
                              int stride) const {
    for (int key = 0; key < count; ++key) {
      float& x = s[key * stride];
      x = sees(scores, begin + key) ? rules::Entmax::weight(x * factor, level) : 0.0f;
      if (number == 1 && x > 0) x = 1;  // to the last bit
    }
  }

  /// s to P, and dp to dS.
  __device__ void gradients(const ScoresView& scores, int begin, int count, float* s, float* dp,
                            int stride) {
    for (int key = count - 1; key >= 0; --key) {
      float &x = s[key * stride], &g = dp[key * stride];
      const float product = x;
      if (!sees(scores, begin + key)) {
        x = g = 0;
        continue;
      }
      if constexpr (rule == Rule::stick) {
        g = rules::Stick::gradient(x * factor, g, known, sum, x);
      } else if constexpr (rule == Rule::entmax) {
        const float w = rules::Entmax::weight(x * factor, log_sum);
        x = w * w;
        g = w * (g - d);
      } else {
        const float logit = rules::Tra::logit(x * factor, pull, known);
        x = power_of_two(logit - log_sum * log2_of_e);
        g = rules::Tra::gradient(logit, log_sum, x, g, d);
        sum += g * known;
      }
      raw += g * product;
    }
  }
};

/// Products of a warp's 16 rows, to and from a tile: entry (r, c) is at r row_stride + c
/// column_stride.
template <int m>
__device__ void put_tile(float* tile, int row_stride, int column_stride, const float (&x)[m][4]) {
  float* const to = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      to[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride] = x[i][e];
    }
  }
}
template <int m>
__device__ void get_tile(const float* tile, int row_stride, int column_stride, float (&x)[m][4]) {
  const float* const from = tile + (16 * warp_index() + lane_row()) * row_stride;
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      x[i][e] =
          from[8 * (e / 2) * row_stride + (8 * i + 2 * lane_column() + e % 2) * column_stride];
    }
  }
}

template <class Product>
constexpr int tile_entries = tile_rows* Product::stride(slice);
template <class Product>
constexpr int step_entries = steps* Product::stride(slice);
constexpr int walk_stride = tile_rows + 1;  // of a key, where a block has 64 queries
constexpr int wave_stride = steps + 1;      // where it has 64 keys
constexpr int walk_floats = steps * walk_stride, wave_floats = tile_rows * wave_stride;

template <class Product>
constexpr std::size_t forward_bytes_of_rules =
    sizeof(typename Product::Element) *
    (tile_entries<Product> + 2 * step_entries<Product>)+sizeof(float) * walk_floats;
template <class Product>
constexpr std::size_t backward_bytes_of_rules = sizeof(typename Product::Element) * 2 *
                                                (tile_entries<Product> + step_entries<Product>)+2 *
                                                sizeof(float) * std::max(walk_floats, wave_floats);

/// c += rows a of `mine` times rows of `others`, over all slices of the head; the slices' tiles
/// pass through shared memory.
template <class Product, int m, class Mine, class Others>
__device__ void dots_of_slices(float (&c)[m][4], typename Product::Element* mine,
                               typename Product::Element* others, int parts, bool busy,
                               const Mine& bring_mine, const Others& bring_others) {
  clear(c);
  for (int part = 0; part < parts; ++part) {
    __syncthreads();
    if (parts > 1) bring_mine(part);
    bring_others(part);
    __syncthreads();
    if (busy) dots<Product, slice>(c, mine + 16 * warp_index() * Product::stride(slice), others);
  }
}

/// The queries of a block: first .. first + rows - 1 of a segment, at positions from `start` on.
/// Those with the most keys are begun first.
struct BlockQueries {
  SegmentView at;
  int first, rows, start;
};
__device__ __forceinline__ BlockQueries own_queries(const SegmentsView& segments) {
  const std::int64_t slot = std::int64_t{gridDim.x} - 1 - blockIdx.x;
  const Tile tile = tile_at(segments.query_begin, segments.count, tile_rows, slot);
  const SegmentView at = segments[tile.segment];
  return {at, tile.first, min(tile_rows, at.queries - tile.first), at.offset() + tile.first};
}

/// A tile, there for this thread when it returns and for the others after a barrier.
template <class Product, int rows>
__device__ void fetch(typename Product::Element* tile, const HeadsView& x, std::int64_t row,
                      int count, int head, int part) {
  stage<Product, slice, rows>(tile, x, row, count, head, part * slice);
  commit_copies();
  wait_for_copies<0>();
  settle<Product, slice, rows>(tile, x);
}

template <class Product, Rule rule>
__global__ void __launch_bounds__(attention_threads) forward_kernel(RuleTask task) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  __shared__ float shrinks[tile_rows];
  Element* const q = shared_memory<Element>();
  Element *const k = q + tile_entries<Product>, *const v = k + step_entries<Product>;
  auto* const s = reinterpret_cast<float*>(v + step_entries<Product>);

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const BlockQueries own = own_queries(scores.segments);
  const SegmentView& at = own.at;
  const int first = own.first, rows = own.rows, start = own.start;
  if (rows <= 0) return;
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows;

  Walker<rule> walker;
  if (thread < tile_rows) walker.start(scores, at, first + thread, head);
  float out[1][n][4];
  clear(out[0]);
  const auto bring_queries = [&](int of) {
    fetch<Product, tile_rows>(q, scores.q, at.query + first, rows, head, of);
  };
  if (task.key_slices == 1) bring_queries(0);
  const int first_key = scores.first_key(start);
  bool goes_on = true;
  for (int end = start + rows; end > first_key && goes_on;) {
    const int begin = max(first_key, (end - 1) / steps * steps), count = end - begin;
    float p[m][4];
    dots_of_slices<Product>(p, q, k, task.key_slices, busy, bring_queries, [&](int of) {
      fetch<Product, steps>(k, scores.k, at.key + begin, count, key_head, of);
      if (of == 0) fetch<Product, steps>(v, task.v, at.key + begin, count, key_head, part);
    });
    put_tile(s, 1, walk_stride, p);
    __syncthreads();
    if (thread < tile_rows) {
      shrinks[thread] = walker.weigh(scores, begin, count, s + thread, walk_stride);
      for (int key = count; key < steps; ++key) s[key * walk_stride + thread] = 0;
    }
    goes_on = __syncthreads_or(thread < tile_rows && !walker.spent());
    if (busy) {
      get_tile(s, 1, walk_stride, p);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float shrink = shrinks[row + lane_row() + 8 * i];
#pragma unroll
        for (int c = 0; c < n; ++c) {
          out[0][c][2 * i] *= shrink;
          out[0][c][2 * i + 1] *= shrink;
        }
      }
      mix<Product>(out[0], p, v);
    }
    end = begin;
  }

  __syncthreads();
  if (thread < tile_rows) {
    const bool none = rule == Rule::tra && walker.known == 0;
    shrinks[thread] = rule == Rule::stick ? 1.0f : none ? 0.0f : 1.0f / walker.sum;
    if (rule == Rule::tra && task.log_sum && part == 0 && walker.there) {
      task.log_sum[(at.query + first + thread) * scores.heads + head] =
          none ? 0.0f : (walker.level + log2f(walker.sum)) * ln_of_2;
    }
  }
  __syncthreads();
  if (!busy) return;
  float factors[1][2];
#pragma unroll
  for (int i = 0; i < 2; ++i) factors[0][i] = shrinks[row + lane_row() + 8 * i];
  store_rows<Product>(q + row * Product::stride(slice), task.y, at.query + first + row, rows - row,
                      head, part * slice, out, factors);
}

template <class Product>
__global__ void __launch_bounds__(attention_threads) entmax_kernel(RuleTask task) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  __shared__ float shares[tile_rows];
  Element* const q = shared_memory<Element>();
  Element *const k = q + tile_entries<Product>, *const v = k + step_entries<Product>;
  auto* const s = reinterpret_cast<float*>(v + step_entries<Product>);

  const ScoresView& scores = task.scores;
  const int head = static_cast<int>(blockIdx.y), part = static_cast<int>(blockIdx.z);
  const int key_head = head / scores.group;
  const BlockQueries own = own_queries(scores.segments);
  const SegmentView& at = own.at;
  const int first = own.first, rows = own.rows, start = own.start;
  if (rows <= 0) return;
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows, walks = thread < tile_rows;

  Walker<Rule::entmax> walker;
  walker.level = -std::numeric_limits<float>::max();
  if (walks) walker.start(scores, at, first + thread, head);
  const auto bring_queries = [&](int of) {
    fetch<Product, tile_rows>(q, scores.q, at.query + first, rows, head, of);
  };
  if (task.key_slices == 1) bring_queries(0);
  // Calls body(begin, count) with each block of scores in s; `mixed`: its values come too.
  const auto each_block = [&](bool mixed, const auto& body) {
    for (int begin = scores.first_key(start); begin < start + rows; begin += steps) {
      const int count = min(steps, start + rows - begin);
      float x[m][4];
      dots_of_slices<Product>(x, q, k, task.key_slices, busy, bring_queries, [&](int of) {
        fetch<Product, steps>(k, scores.k, at.key + begin, count, key_head, of);
        if (mixed && of == 0) {
          fetch<Product, steps>(v, task.v, at.key + begin, count, key_head, part);
        }
      });
      put_tile(s, 1, walk_stride, x);
      __syncthreads();
      body(begin, count);
    }
  };
  each_block(false, [&](int begin, int count) {
    if (walks) walker.highest(scores, begin, count, s + thread, walk_stride);
  });
  walker.level -= 1;
  bool moves = true;
  for (int step = 0; step < rules::Entmax::most_steps && moves; ++step) {
    walker.sum = walker.known = 0;
    walker.number = 0;
    each_block(false, [&](int begin, int count) {
      if (walks) walker.add_up(scores, begin, count, s + thread, walk_stride);
    });
    const float next = rules::Entmax::step(walker.level, walker.sum, walker.known);
    moves = __syncthreads_or(walks && walker.there && next > walker.level);
    if (moves) walker.level = next;
  }

  if (walker.number == 1) walker.sum = 1;

  float out[1][n][4], mean[1][n][4];
  clear(out[0]);
  clear(mean[0]);
  each_block(true, [&](int begin, int count) {
    if (walks) {
      walker.weigh_roots(scores, begin, count, s + thread, walk_stride);
      for (int key = count; key < steps; ++key) s[key * walk_stride + thread] = 0;
    }
    __syncthreads();
    if (!busy) return;
    float x[m][4];
    get_tile(s, 1, walk_stride, x);
    if (task.mean) mix<Product>(mean[0], x, v);
#pragma unroll
    for (int c = 0; c < m; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) x[c][e] *= x[c][e];
    }
    mix<Product>(out[0], x, v);
  });

  __syncthreads();
  if (walks) {
    shares[thread] = walker.there ? 1.0f / walker.sum : 0.0f;
    if (task.log_sum && part == 0 && walker.there) {
      task.log_sum[(at.query + first + thread) * scores.heads + head] = walker.level;
    }
  }
  __syncthreads();
  if (!busy) return;
  float factors[1][2] = {{1, 1}};
  Element* const own_rows = q + row * Product::stride(slice);
  const std::int64_t first_row = at.query + first + row;
  store_rows<Product>(own_rows, task.y, first_row, rows - row, head, part * slice, out, factors);
  if (!task.mean) return;
#pragma unroll
  for (int i = 0; i < 2; ++i) factors[0][i] = shares[row + lane_row() + 8 * i];
  store_rows<Product>(own_rows, task.mean, first_row, rows - row, head, part * slice, mean,
                      factors);
}

/// Entmax's D: dy_i . mean_i as products make dP.
template <class Product>
__global__ void __launch_bounds__(attention_threads) mean_dots(RuleTask task, float* dots) {
  using Element = typename Product::Element;
  constexpr int m = tile_rows / 8;
  Element* const dy = shared_memory<Element>();
  Element* const mean = dy + tile_entries<Product>;
  const int head = static_cast<int>(blockIdx.y);
  const std::int64_t first = std::int64_t{blockIdx.x} * tile_rows;
  const auto rows = static_cast<int>(min(std::int64_t{tile_rows}, task.query_rows - first));
  const bool busy = 16 * warp_index() < rows;
  float x[m][4];
  const auto bring_dy = [&](int of) {
    fetch<Product, tile_rows>(dy, task.dy, first, rows, head, of);
  };
  if (task.value_slices == 1) bring_dy(0);
  dots_of_slices<Product>(x, dy, mean, task.value_slices, busy, bring_dy, [&](int of) {
    fetch<Product, tile_rows>(mean, task.y, first, rows, head, of);
  });
#pragma unroll
  for (int c = 0; c < m; ++c) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int r = 16 * warp_index() + lane_row() + 8 * (e / 2);
      const int column = 8 * c + 2 * lane_column() + e % 2;
      if (r == column && r < rows) dots[(first + r) * task.scores.heads + head] = x[c][e];
    }
  }
}

template <class Product, Rule rule>
__global__ void __launch_bounds__(attention_threads) query_kernel(RuleTask task) {
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

  Walker<rule> walker;
  if (thread < tile_rows) walker.start_back(task, at, first + thread, head);
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
    const int begin = max(first_key, (end - 1) / steps * steps), count = end - begin;
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
    if (thread < tile_rows) {
      walker.gradients(scores, begin, count, s + thread, dp + thread, walk_stride);
      for (int key = count; key < steps; ++key) dp[key * walk_stride + thread] = 0;
    }
    goes_on = __syncthreads_or(thread < tile_rows && !walker.spent());
    if (busy) {
      get_tile(dp, 1, walk_stride, x);
      mix<Product>(dq[0], x, k);
    }
    end = begin;
  }

  if (thread < rows && part == 0) {
    const std::int64_t entry = (first_row + thread) * scores.heads + head;
    const auto put = [&](float* to, bool add, float value) {
      if (to) to[entry] = add ? to[entry] + value : value;
    };
    put(task.dtau, task.add_tau, scores.scale * walker.raw);
    if (rule == Rule::tra) put(task.dpull, task.add_pull, walker.sum);
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

/// dk and dv of the keys first, first + 1, ... of a segment. `done` is this tile's progress,
/// `behind` that of the tile after it, or null.
template <class Product, Rule rule>
__device__ void key_tile(const RuleTask& task, const SegmentView& at, int first, int key_head,
                         int part, std::int32_t* done, const std::int32_t* behind) {
  using Element = typename Product::Element;
  constexpr int n = slice / 8, m = steps / 8;
  Element* const k = shared_memory<Element>();
  Element* const v = k + tile_entries<Product>;
  Element *const q = v + tile_entries<Product>, *const dy = q + step_entries<Product>;
  auto* const s = reinterpret_cast<float*>(dy + step_entries<Product>);
  float* const dp = s + wave_floats;

  const ScoresView& scores = task.scores;
  const int rows = min(tile_rows, at.keys - first);
  const int thread = static_cast<int>(threadIdx.x), row = 16 * warp_index();
  const bool busy = row < rows;
  const auto first_query_of = [&](int key) { return max(0, key - at.offset()) / steps * steps; };
  const int first_query = first_query_of(first);
  const int last_query = scores.last_position(first + rows - 1, at.keys) - at.offset() + 1;
  const int steps_of_head = (at.queries + steps - 1) / steps;

  float dk[1][n][4], dv[1][n][4];
  clear(dk[0]);
  clear(dv[0]);
  const auto bring_keys = [&](int of) {
    fetch<Product, tile_rows>(k, scores.k, at.key + first, rows, key_head, of);
  };
  const auto bring_values = [&](int of) {
    fetch<Product, tile_rows>(v, task.v, at.key + first, rows, key_head, of);
  };
  if (task.key_slices == 1) bring_keys(0);
  if (task.value_slices == 1) bring_values(0);
  for (int g = 0; g < scores.group; ++g) {
    const int head = key_head * scores.group + g;
    for (int begin = first_query; begin < last_query; begin += steps) {
      const int count = min(steps, at.queries - begin), number = g * steps_of_head + begin / steps;
      const bool first_of_walk =
          !leftward(rule) || !behind || begin < first_query_of(first + tile_rows);
      if (!first_of_walk) wait_for(behind, number + 1);
      Walker<rule> walker;
      Pair<float>* const walked =
          task.walked +
          ((part * task.query_rows + at.query + begin + thread) * scores.heads + head);
      if (thread < steps) walker.start_back(task, at, begin + thread, head);
      if (!first_of_walk && thread < count) {
        const volatile Pair<float>* const left = walked;
        walker.known = left->first;
        walker.sum = left->second;
      }
      if (__syncthreads_or(thread < steps && !walker.spent())) {
        const auto bring_queries = [&](int of) {
          fetch<Product, steps>(q, scores.q, at.query + begin, count, head, of);
        };
        const auto bring_dy = [&](int of) {
          fetch<Product, steps>(dy, task.dy, at.query + begin, count, head, of);
        };
        float x[m][4];
        dots_of_slices<Product>(x, v, dy, task.value_slices, busy, bring_values, bring_dy);
        put_tile(dp, wave_stride, 1, x);
        dots_of_slices<Product>(x, k, q, task.key_slices, busy, bring_keys, bring_queries);
        put_tile(s, wave_stride, 1, x);
        __syncthreads();
        if (task.key_slices > 1 && part < task.key_slices) bring_queries(part);
        if (task.value_slices > 1 && part < task.value_slices) bring_dy(part);
        if (thread < steps) {
          walker.gradients(scores, first, rows, s + thread, dp + thread, wave_stride);
          const float tau = scores.tau_of(at.query + begin + thread, head, thread < count);
          for (int key = 0; key < rows; ++key) dp[key * wave_stride + thread] *= tau;
        }
        __syncthreads();
        if (busy) {
          get_tile(s, wave_stride, 1, x);
          if (part < task.value_slices) mix<Product>(dv[0], x, dy);
          get_tile(dp, wave_stride, 1, x);
          if (part < task.key_slices) mix<Product>(dk[0], x, q);
        }
      }
      if constexpr (!leftward(rule)) continue;
      if (thread < count) {
        volatile Pair<float>* const left = walked;
        left->first = walker.known;
        left->second = walker.sum;
      }
      publish(done, number + 1);
    }
  }
  if (leftward(rule)) publish(done, scores.group * steps_of_head);
  if (!busy) return;
  const std::int64_t first_row = at.key + first + row;
  if (task.dk && part < task.key_slices) {
    const float factors[1][2] = {{scores.scale, scores.scale}};
    store_rows<Product>(k + row * Product::stride(slice), task.dk, first_row, rows - row, key_head,
                        part * slice, dk, factors);
  }
  if (task.dv && part < task.value_slices) {
    const float factors[1][2] = {{1, 1}};
    store_rows<Product>(v + row * Product::stride(slice), task.dv, first_row, rows - row, key_head,
                        part * slice, dv, factors);
  }
}

template <class Product, Rule rule>
__global__ void __launch_bounds__(attention_threads) key_kernel(RuleTask task) {
  const SegmentsView& segments = task.scores.segments;
  const int heads = task.scores.heads / task.scores.group;
  const int parts = max(task.key_slices, task.value_slices);
  const int ranks = most_tiles(segments.key_length, segments.count);
  for (;;) {
    const ChainTile next = chain_tile(take_ticket(task.progress), segments.count, heads, parts);
    if (next.rank >= ranks) return;
    const SegmentView at = segments[next.segment];
    const int tiles = (at.keys + tile_rows - 1) / tile_rows, tile = tiles - 1 - next.rank;
    if (tile < 0) continue;
    const std::int64_t slot = at.key / tile_rows + next.segment + tile;
    std::int32_t* const done = task.progress + 1 + (slot * heads + next.head) * parts + next.slice;
    const std::int64_t slot_step = std::int64_t{heads} * parts;
    key_tile<Product, rule>(task, at, tile * tile_rows, next.head, next.slice, done,
                            tile + 1 < tiles ? done + slot_step : nullptr);
  }
}

template <Rule rule>
using Named = std::integral_constant<Rule, rule>;

/// Calls body(Product{}, rule): TRA's scores are f32 whatever the math.
template <class Body>
void visit_rule(const Scores& scores, Math math, Body&& body) {
  if (scores.rule == Rule::tra) return body(ExactProduct{}, Named<Rule::tra>{});
  const auto with = [&](auto product) {
    if (scores.rule == Rule::stick) return body(product, Named<Rule::stick>{});
    return body(product, Named<Rule::entmax>{});
  };
  if (math == Math::exact) return with(ExactProduct{});
  if (math == Math::bf16 || scores.q.data.dtype() == DType::bf16) return with(Bf16Product{});
  with(Tf32Product{});
}

}  // namespace

void attend_by_rule(CudaBackend& backend, const Attention& op) {
  const Scores& scores = op.scores;
  const RuleTask task{.scores = view(scores),
                      .v = view(op.v),
                      .y = view(op.y),
                      .mean = view(op.mean),
                      .log_sum = op.log_sum ? op.log_sum.data<float>() : nullptr,
                      .key_slices = slices(scores.q.width, slice),
                      .value_slices = slices(op.v.width, slice)};
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  visit_rule(scores, backend.math(scores.math), [&](auto product, auto of) {
    using Kind = decltype(product);
    constexpr Rule rule = decltype(of)::value;
    const auto with = [&](auto kernel) {
      launch(backend.stream(), {slots, scores.q.heads, task.value_slices}, attention_threads,
             forward_bytes_of_rules<Kind>, kernel, task);
    };
    if constexpr (rule == Rule::entmax) {
      with(&entmax_kernel<Kind>);
    } else {
      with(&forward_kernel<Kind, rule>);
    }
  });
}

void rule_gradients(CudaBackend& backend, const AttentionBackward& op) {
  const Scores& scores = op.scores;
  const std::int64_t rows = scores.q.data.rows(), heads = scores.q.heads;
  const Tensor dots(backend, {std::max<std::int64_t>(1, rows), heads}, DType::f32);
  if (leftward(scores.rule)) {
    row_dots(backend, view(op.dy), view(op.y), rows, static_cast<std::int32_t>(heads),
             dots.data<float>());
  }
  const auto target = [](const Target& x) {
    return x ? x.tensor.data<float>() : static_cast<float*>(nullptr);
  };
  RuleTask task{.scores = view(scores),
                .v = view(op.v),
                .y = view(op.y),
                .dy = view(op.dy),
                .dq = view(op.dq),
                .dk = view(op.dk),
                .dv = view(op.dv),
                .log_sum = op.log_sum ? op.log_sum.data<float>() : nullptr,
                .row_dots = dots.data<float>(),
                .dtau = target(op.dscores.tau),
                .dpull = target(op.dscores.pull),
                .add_tau = op.dscores.tau.add,
                .add_pull = op.dscores.pull.add,
                .key_slices = slices(scores.q.width, slice),
                .value_slices = slices(op.v.width, slice),
                .query_rows = rows};
  const std::int64_t count = scores.queries.count();
  const std::int64_t query_slots = tile_slots(rows, count, tile_rows);
  const std::int64_t key_slots = tile_slots(scores.k.data.rows(), count, tile_rows);
  const std::int64_t parts = std::max(task.key_slices, task.value_slices);
  visit_rule(scores, backend.math(scores.math), [&](auto product, auto of) {
    using Kind = decltype(product);
    constexpr Rule rule = decltype(of)::value;
    if constexpr (rule == Rule::entmax) {
      launch(backend.stream(), {(rows + tile_rows - 1) / tile_rows, heads}, attention_threads,
             2 * sizeof(typename Kind::Element) * tile_entries<Kind>, &mean_dots<Kind>, task,
             dots.data<float>());
    }
    if (op.dq || op.dscores.tau || op.dscores.pull) {
      launch(backend.stream(), {query_slots, heads, task.key_slices}, attention_threads,
             backward_bytes_of_rules<Kind>, &query_kernel<Kind, rule>, task);
    }
    if (!op.dk && !op.dv) return;
    const Tensor walked(backend, {std::max<std::int64_t>(1, 2 * parts * rows * heads)}, DType::f32);
    const Tensor progress(backend, {progress_words(key_slots, scores.k.heads, parts)}, DType::i32);
    backend.stream().zero(progress.address(), progress.bytes());
    task.walked = static_cast<Pair<float>*>(walked.address());
    task.progress = progress.data<std::int32_t>();
    launch(backend.stream(), chain_blocks(backend, key_slots * scores.k.heads * parts),
           attention_threads, backward_bytes_of_rules<Kind>, &key_kernel<Kind, rule>, task);
  });
}

}  // namespace longhand::cuda
