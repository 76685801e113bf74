#pragma once

#include "core/contract/attention.h"
#include "cuda/attention/run.h"

/// Shared code of two operations that inspect attention: AttentionWeights, which each rule
/// implements in its own file, and FindBadScore. Each warp handles one query. Products are f32.
namespace longhand::cuda {

inline constexpr int inspect_threads = 256, inspect_warps = inspect_threads / warp_size;

/// The score of query t and key j of a segment, returned to all lanes of the warp. t and j are
/// indices within the segment.
__device__ __forceinline__ float inspected_score(const ScoresView& s, const SegmentView& at, int t,
                                                 int head, int j) {
  const float factor = s.scale * s.tau_of(at.query + t, head);
  float sum = 0;
  for (int c = lane_index(); c < s.q.width; c += warp_size) {
    sum += load_one(s.q, at.query + t, head, c) * load_one(s.k, at.key + j, head / s.group, c);
  }
  return factor * warp_sum(sum) + s.shift_of(at, at.offset() + t, head, j);
}

/// The scores of one query and head. The query sees the keys first .. end - 1 of its segment, and
/// the score of key j is at[j].
struct ScoreRow {
  float* at;
  int first, end, head;
  std::int64_t entry;  // index of this query and head in tensors [query tokens, heads]
};

/// Each warp computes the weights of one query and head. It first stores the scores, and then
/// rule.weigh(row) replaces them by weights. All lanes call rule.weigh().
template <class Rule>
__global__ void __launch_bounds__(inspect_threads)
    weights_kernel(ScoresView scores, Rule rule, float* weights) {
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, inspect_warps, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  const int t = tile.first + warp_index(), head = static_cast<int>(blockIdx.y), lane = lane_index();
  if (t >= at.queries) return;
  std::int64_t before = 0;  // number of pairs (query, key) in earlier segments
  for (int s = lane; s < tile.segment; s += warp_size) {
    before += std::int64_t{scores.segments.query_length[s]} * scores.segments.key_length[s];
  }
  for (int step = warp_size / 2; step > 0; step /= 2) {
    before += __shfl_xor_sync(full_warp, before, step);
  }
  float* const row = weights + before * scores.heads +
                     (std::int64_t{head} * at.queries + t) * std::int64_t{at.keys};

  const int p = scores.offset(at) + t, first = scores.first_key(p);
  const int end = min(Rule::own_key ? p + 1 : p, at.keys);
  for (int j = 0; j < at.keys; ++j) {
    const float s = j < first || j >= end ? 0.0f : inspected_score(scores, at, t, head, j);
    if (lane == 0) row[j] = s;
  }
  __syncwarp();
  rule.weigh(ScoreRow{row, first, end, head, (at.query + t) * scores.heads + head});
}

template <class Rule>
void write_weights(CudaBackend& backend, const AttentionWeights& op, const Rule& rule) {
  const Scores& s = op.scores;
  launch(backend.stream(),
         {tile_slots(s.q.data.rows(), s.queries.count(), inspect_warps), s.q.heads},
         inspect_threads, 0, &weights_kernel<Rule>, view(s), rule, op.weights.data<float>());
}

}  // namespace longhand::cuda
