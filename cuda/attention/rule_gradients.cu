#include "cuda/attention/rule_walk.h"
#include "cuda/attention/tickets.h"

/// Gradients of attention by rules other than softmax. For dq, a block has 64 queries and processes
/// their keys as in the forward pass. For dk and dv, a block has 64 keys and processes the queries
/// after them. Each query's state then depends on all later keys. The block of the following keys
/// stores this state in `walked`, and this block reads it and stores the state after its own keys.
/// Blocks draw tiles by ticket, the last keys first (tickets.h). Each block is at least one step
/// behind the block for which it waits.
namespace longhand::cuda {

using namespace walks;

namespace {

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
      walker.template gradients<Product>(scores, begin, count, s + thread, dp + thread,
                                         walk_stride);
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
    put(task.row_sums, false, walker.all);
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

/// Computes dk and dv of the keys first, first + 1, ... of a segment. `done` is this tile's
/// progress. `behind` is the progress of the tile of the following keys, or null if there is none.
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
  // put_shift stores dc of this thread's key, if the thread has one.
  const bool has_shift = task.dshift && part == 0;
  const auto put_shift = [&](int head, float sum) {
    if (thread >= rows) return;
    const int position = first + thread;
    sum = -sum;
    if (task.row_sums && position >= at.offset()) {
      sum += task.row_sums[(at.query + position - at.offset()) * scores.heads + head];
    }
    float* const to = task.dshift + (at.key + position) * scores.heads + head;
    *to = task.add_shift ? *to + sum : sum;
  };
  for (int g = 0; g < scores.group; ++g) {
    const int head = key_head * scores.group + g;
    float shift_sum = 0;
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
          walker.template gradients<Product>(scores, first, rows, s + thread, dp + thread,
                                             wave_stride);
        }
        if (has_shift) {
          __syncthreads();
          for (int query = 0; thread < rows && query < steps; ++query) {
            shift_sum += dp[thread * wave_stride + query];
          }
          __syncthreads();
        }
        if (thread < steps) {
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
    if (has_shift) put_shift(head, shift_sum);
  }
  if (leftward(rule)) {
    publish(done, scores.group * steps_of_head);
  } else {
    // The results overwrite k and v in shared memory. If no query sees these keys, the block has
    // not passed a barrier yet, and other threads may still copy keys and values there.
    __syncthreads();
  }
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
    const TicketTile next =
        tile_of_ticket(take_ticket(task.progress), segments.count, heads, parts);
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

}  // namespace

void rule_gradients(CudaBackend& backend, const AttentionBackward& op) {
  const Scores& scores = op.scores;
  const RuleTensors rule = tensors_of(op.rule);
  const std::int64_t rows = scores.q.data.rows(), heads = scores.q.heads;
  const Tensor dots(backend, {std::max<std::int64_t>(1, rows), heads}, DType::f32);
  const Math math = rule.rule == Rule::tra ? Math::exact : backend.math(scores.math);
  if (leftward(rule.rule)) {
    row_dots(backend, math, view(op.dy), view(rule.y), view(rule.residue), rows,
             static_cast<std::int32_t>(heads), dots.data<float>());
  }
  const auto target = [](const Target& x) {
    return x ? x.tensor.data<float>() : static_cast<float*>(nullptr);
  };
  RuleTask task{.scores = view(scores, rule),
                .v = view(op.v),
                .y = view(rule.y),
                .dy = view(op.dy),
                .dq = view(op.dq),
                .dk = view(op.dk),
                .dv = view(op.dv),
                .log_sum = rule.log_sum ? rule.log_sum.data<float>() : nullptr,
                .row_dots = dots.data<float>(),
                .dtau = target(op.dscores.multiplier),
                .dpull = target(rule.dcount_bias),
                .dshift = target(op.dscores.decay),
                .add_tau = op.dscores.multiplier.add,
                .add_pull = rule.dcount_bias.add,
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
    row_sums = Tensor(backend, dots.shape(), DType::f32);
    task.row_sums = row_sums.data<float>();
  }
  if (rule.rule == Rule::entmax) entmax_dots(backend, scores, task, dots.data<float>());
  visit_rule(scores, rule.rule, backend.math(scores.math), [&](auto product, auto of) {
    using Kind = decltype(product);
    constexpr Rule kind = decltype(of)::value;
    if (op.dq || op.dscores.multiplier || rule.dcount_bias || task.row_sums) {
      launch(backend.stream(), {query_slots, heads, task.key_slices}, attention_threads,
             backward_bytes<Kind>, &query_kernel<Kind, kind>, task);
    }
    if (!op.dk && !op.dv && !op.dscores.decay) return;
    const Tensor walked(backend, {std::max<std::int64_t>(1, 2 * parts * rows * heads)}, DType::f32);
    const Tensor progress(backend, {progress_words(key_slots, scores.k.heads, parts)}, DType::i32);
    backend.stream().zero(progress.address(), progress.bytes());
    task.walked = static_cast<Pair<float>*>(walked.address());
    task.progress = progress.data<std::int32_t>();
    launch(backend.stream(), ticket_blocks(backend, key_slots * scores.k.heads * parts),
           attention_threads, backward_bytes<Kind>, &key_kernel<Kind, kind>, task);
  });
}

}  // namespace longhand::cuda
