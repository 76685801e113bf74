#include "cuda/attention/rule_walk.h"

/// Forward pass of attention by rules other than softmax. A block has 64 queries. It processes the
/// keys from the last to the first, 32 at a time, until the weight of all queries is used up.
namespace longhand::cuda {

using namespace walks;

namespace {

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
  Element* const own_rows = q + row * Product::stride(slice);
  store_rows<Product>(own_rows, task.y, at.query + first + row, rows - row, head, part * slice, out,
                      factors);
  if (!task.residue) return;
#pragma unroll
  for (int c = 0; c < n; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float y = out[0][c][i] * factors[0][i / 2];
      out[0][c][i] = y - to_float(from_float<bf16>(y));
    }
  }
  factors[0][0] = factors[0][1] = 1;
  store_rows<Product>(own_rows, task.residue, at.query + first + row, rows - row, head,
                      part * slice, out, factors);
}

}  // namespace

void attend_by_rule(CudaBackend& backend, const Attention& op) {
  const Scores& scores = op.scores;
  const RuleTensors rule = tensors_of(op.rule);
  const RuleTask task{.scores = view(scores, rule),
                      .v = view(op.v),
                      .y = view(op.y),
                      .mean = view(rule.root_mean),
                      .residue = view(rule.residue),
                      .log_sum = rule.log_sum ? rule.log_sum.data<float>() : nullptr,
                      .key_slices = slices(scores.q.width, slice),
                      .value_slices = slices(op.v.width, slice)};
  if (rule.rule == Rule::entmax) return attend_by_entmax(backend, scores, task);
  const std::int64_t slots = tile_slots(scores.q.data.rows(), scores.queries.count(), tile_rows);
  visit_rule(scores, rule.rule, backend.math(scores.math), [&](auto product, auto of) {
    using Kind = decltype(product);
    constexpr Rule kind = decltype(of)::value;
    if constexpr (leftward(kind)) {
      launch(backend.stream(), {slots, scores.q.heads, task.value_slices}, attention_threads,
             forward_bytes<Kind>, &forward_kernel<Kind, kind>, task);
    }
  });
}

}  // namespace longhand::cuda
