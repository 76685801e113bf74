#include "cuda/attention/parts.h"

#include <algorithm>
#include <limits>

#include "cuda/attention/attend.h"

/// Softmax attention for few queries with many keys, as in decoding. The keys of a tile of queries
/// are divided into parts. For each query, the thread block of part p stores a level b_p, which is
/// near the maximum score, and the sums over the keys j of this part (attend.h)
///   l_p = sum_j 2^(s_j - b_p);  o_p = sum_j 2^(s_j - b_p) v_j,
/// where s_j is the score of key j times log2 e. A second kernel computes
///   b = max_p b_p;  w_p = 2^(b_p - b);  l = sum_p w_p l_p;
///   y = sum_p w_p o_p / l;  log_sum = (b + log2 l) ln 2.
/// The parts are added in order. A sink, which is a score without a value, is added like one more
/// part whose o_p is 0. The keys of a segment are divided at multiples of 64, so a short segment
/// may have empty parts.
namespace longhand::cuda {
namespace {

// Desired number of blocks in the grid, about two per multiprocessor.
constexpr std::int64_t wanted_blocks = 256;
// Each part should have at least this many keys if the segment has the average number of keys.
constexpr std::int64_t least_keys = 128;
// Keys are divided only if segments have at most this many queries on average.
constexpr std::int64_t queries_of_warp = 16;
constexpr int most_parts = 64;

template <class Product, int slice, bool shifted>
__global__ void __launch_bounds__(attention_threads, blocks_on(90, slice > 32 ? 0
                                                                   : shifted  ? 2
                                                                              : 4))
    part_kernel(AttentionTask task) {
  const SegmentsView& segments = task.scores.segments;
  const Tile tile = tile_at(segments.query_begin, segments.count, tile_rows, blockIdx.y);
  if (tile.first >= segments.query_length[tile.segment]) return;
  attend<Product, slice, 1, Walk::part, shifted>(task, tile, static_cast<int>(blockIdx.x), 0,
                                                 static_cast<int>(blockIdx.z));
}

/// Combines the results of all parts of the keys into the result of attention. There is one warp
/// per query and head. `task` is the task of part_kernel, which computed the parts, and y is the
/// output of the operation.
__global__ void join_kernel(AttentionTask task, HeadsView y) {
  const int heads = task.scores.heads;
  const std::int64_t entries = task.query_rows * heads, entry = thread_in_grid() / warp_size;
  if (entry >= entries) return;
  const std::int64_t row = entry / heads;
  const auto head = static_cast<int>(entry % heads);
  const Pair<float>* const stats = task.stats + entry;
  const float* const sink = task.sink;
  float level = sink ? sink[head] * log2_of_e : -std::numeric_limits<float>::infinity();
  for (int p = 0; p < task.key_parts; ++p) level = fmaxf(level, stats[p * entries].first);
  const float base = level == -std::numeric_limits<float>::infinity() ? 0.0f : level;

  float sum = sink ? power_of_two(sink[head] * log2_of_e - base) : 0.0f;
  for (int p = 0; p < task.key_parts; ++p) {
    const Pair<float> of = stats[p * entries];
    sum += power_of_two(of.first - base) * of.second;
  }
  const float inverse = 1.0f / sum;
  if (task.log_sum && lane_index() == 0) task.log_sum[entry] = (level + log2f(sum)) * ln_of_2;
  for (int c = 8 * lane_index(); c < y.width; c += 8 * warp_size) {
    float total[8] = {};
    for (int p = 0; p < task.key_parts; ++p) {
      const Pair<float> of = stats[p * entries];
      // The query sees no key of part p. The part's result in task.y may not have been written.
      if (of.second == 0) continue;
      float o[8];
      load_eight(o, task.y, p * task.query_rows + row, head, c);
      const float weight = power_of_two(of.first - base);
#pragma unroll
      for (int e = 0; e < 8; ++e) total[e] += weight * o[e];
    }
#pragma unroll
    for (float& x : total) x *= inverse;
    store_eight(y, row, head, c, total);
  }
}

}  // namespace

int key_parts(const Attention& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows(), count = s.queries.count();
  if (rows == 0 || rows > queries_of_warp * count) return 1;
  const std::int64_t blocks = tile_slots(rows, count, tile_rows) * s.q.heads;
  std::int64_t keys = s.k.data.rows() / count;
  if (s.window > 0) keys = std::min(keys, s.window + tile_rows);
  return static_cast<int>(std::clamp<std::int64_t>(
      std::min(wanted_blocks / blocks, (keys + least_keys - 1) / least_keys), 1, most_parts));
}

void attend_in_parts(CudaBackend& backend, const Attention& op, const SoftmaxRule& rule,
                     int parts) {
  const std::int64_t rows = op.scores.q.data.rows(), heads = op.scores.q.heads;
  const Tensor sums(backend, {parts * rows, heads * op.v.width}, DType::f32);
  const Tensor stats(backend, {parts * rows, heads * 2}, DType::f32);
  AttentionTask task = attention_task(op, rule.sink, rule.log_denominator);
  task.y = view(Heads{sums, 0, heads, op.v.width});
  task.key_parts = parts;
  task.query_rows = rows;
  task.stats = reinterpret_cast<Pair<float>*>(stats.data<float>());
  if (is_wide(op.scores.q.width, op.v.width)) {
    attend_wide(backend, op.scores, task);
  } else {
    visit_forward(backend.math(op.scores.math), op.scores, task,
                  [&](auto product, auto size, auto shift, const AttentionTask& sliced) {
                    using Kind = decltype(product);
                    constexpr int slice = decltype(size)::value;
                    launch(backend.stream(),
                           {heads, tile_slots(rows, op.scores.queries.count(), tile_rows), parts},
                           attention_threads, forward_bytes<Kind, slice, 1>,
                           &part_kernel<Kind, slice, decltype(shift)::value>, sliced);
                  });
  }
  launch(backend.stream(), (rows * heads * warp_size + 127) / 128, 128, 0, &join_kernel, task,
         view(op.y));
}

}  // namespace longhand::cuda
