#include <algorithm>

#include "cuda/attention/inspect.h"

namespace longhand::cuda {
namespace {

/// Finds the first NaN or infinite score of each query. Stores its key and head as the number
/// key * heads + head in first[row], where `row` is the query's row. Stores -1 if all scores of the
/// query are finite.
__global__ void __launch_bounds__(inspect_threads)
    bad_scores_kernel(ScoresView scores, bool own_key, std::int64_t* first) {
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, inspect_warps, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  const int t = tile.first + warp_index();
  if (t >= at.queries) return;
  const int p = scores.offset(at) + t;
  std::int64_t found = -1;
  const int end = min(own_key ? p + 1 : p, at.keys);
  for (int j = scores.first_key(p); j < end && found < 0; ++j) {
    for (int head = 0; head < scores.heads && found < 0; ++head) {
      if (!(fabsf(inspected_score(scores, at, t, head, j)) < INFINITY)) {
        found = std::int64_t{j} * scores.heads + head;
      }
    }
  }
  if (lane_index() == 0) first[at.query + t] = found;
}

/// Stores four numbers in `found`: the segment, query position, key position and head of the first
/// NaN or infinite score. If there is no such score, all four are -1. The kernel runs as one warp.
__global__ void first_bad_score(ScoresView scores, const std::int64_t* first, std::int64_t rows,
                                std::int32_t* found) {
  const int lane = lane_index();
  for (std::int64_t begin = 0; begin < rows; begin += warp_size) {
    const bool bad = begin + lane < rows && first[begin + lane] >= 0;
    const unsigned hits = __ballot_sync(full_warp, bad);
    if (hits == 0) continue;
    const std::int64_t row = begin + __ffs(static_cast<int>(hits)) - 1;
    if (lane == 0) {
      int segment = 0;
      while (row >= scores.segments.query_begin[segment] + scores.segments.query_length[segment]) {
        ++segment;
      }
      const SegmentView at = scores.segments[segment];
      found[0] = segment;
      const int first_position = scores.causal ? at.offset() : 0;
      found[1] = static_cast<std::int32_t>(first_position + row - at.query);
      found[2] = static_cast<std::int32_t>(first[row] / scores.heads);
      found[3] = static_cast<std::int32_t>(first[row] % scores.heads);
    }
    return;
  }
  if (lane < 4) found[lane] = -1;
}

}  // namespace

void run(CudaBackend& backend, const FindBadScore& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  // The kernels store one 64-bit word per query in this tensor. Each word occupies two i32 entries.
  const Tensor first(backend, {std::max<std::int64_t>(1, 2 * rows)}, DType::i32);
  auto* const words = static_cast<std::int64_t*>(first.address());
  launch(backend.stream(), tile_slots(rows, s.queries.count(), inspect_warps), inspect_threads, 0,
         &bad_scores_kernel, view(s), op.own_key, words);
  launch(backend.stream(), 1, warp_size, 0, &first_bad_score, view(s), words, rows,
         op.found.data<std::int32_t>());
}

}  // namespace longhand::cuda
