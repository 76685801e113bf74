#include "cuda/attention/rule_walk.h"

/// Entmax cannot process the keys one after another like the other rules, because the threshold of
/// a row depends on all its scores. A block searches for the thresholds of its rows and computes
/// the scores again in each step of the search. Then it computes the weights from the thresholds. D
/// is computed by the same products as dP, in the same order, so dP - D is exactly 0 for a key that
/// has all of a row's weight.
namespace longhand::cuda::walks {
namespace {

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
  // Calls body(begin, count) for each block of keys, with their products q . k in s. If `mixed` is
  // true, the values of the keys are loaded too.
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

/// Computes entmax's D_i = dy_i . mean_i with the same products as dP.
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

}  // namespace

void attend_by_entmax(CudaBackend& backend, const Scores& scores, const RuleTask& task) {
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  visit_product(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    launch(backend.stream(), {slots, scores.q.heads, task.value_slices}, attention_threads,
           forward_bytes<Kind>, &entmax_kernel<Kind>, task);
  });
}

void entmax_dots(CudaBackend& backend, const Scores& scores, const RuleTask& task, float* dots) {
  const std::int64_t tiles = (task.query_rows + tile_rows - 1) / tile_rows;
  visit_product(scores, backend.math(scores.math), [&](auto product) {
    using Kind = decltype(product);
    launch(backend.stream(), {tiles, scores.q.heads}, attention_threads,
           2 * sizeof(typename Kind::Element) * tile_entries<Kind>, &mean_dots<Kind>, task, dots);
  });
}

}  // namespace longhand::cuda::walks
