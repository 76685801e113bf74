#include <algorithm>

#include "cuda/attention/run.h"

/// Operations for inspection. AttentionWeights returns the weights, and FindBadScore finds a score
/// that is not finite. Each warp handles one query. Products are f32.
namespace longhand::cuda {
namespace {

constexpr int look_threads = 256, look_warps = look_threads / warp_size;

/// The score of the query in row t and key j of a segment, returned to all lanes.
__device__ __forceinline__ float score(const ScoresView& s, const SegmentView& at, int t, int head,
                                       int j) {
  const float factor = s.scale * s.tau_of(at.query + t, head);
  float sum = 0;
  for (int c = lane_index(); c < s.q.width; c += warp_size) {
    sum += load_one(s.q, at.query + t, head, c) * load_one(s.k, at.key + j, head / s.group, c);
  }
  return factor * warp_sum(sum) + s.shift_of(at, at.offset() + t, head, j);
}

/// Converts a row of scores to weights by a rule other than softmax.
__device__ void weigh_by_rule(const ScoresView& scores, std::int64_t entry, float* row, int first,
                              int end) {
  if (scores.rule == Rule::entmax) {
    for (int j = first; j < end; ++j) row[j] *= 0.5f;
    const float t = rules::Entmax::threshold(row + first, end - first);
    for (int j = first; j < end; ++j) {
      const float w = rules::Entmax::weight(row[j], t);
      row[j] = w * w;
    }
    return;
  }
  float left = 1, kept = 0, top = 0, sum = 0;
  for (int j = end - 1; j >= first; --j) {
    if (scores.rule == Rule::stick) {
      row[j] = rules::Stick::weigh(row[j] * log2_of_e, left);
    } else {
      const bool none = kept == 0;
      row[j] = rules::Tra::logit(row[j], scores.pull[entry], kept);
      if (kept > 0) top = none ? row[j] : fmaxf(top, row[j]);
    }
  }
  if (scores.rule == Rule::stick) return;
  for (int j = first; j < end; ++j) sum += row[j] = kept > 0 ? expf(row[j] - top) : 0.0f;
  for (int j = first; j < end && kept > 0; ++j) row[j] /= sum;
}

/// Each warp computes the weights of one query and head. It first stores the scores and then
/// replaces them by the weights.
__global__ void __launch_bounds__(look_threads) weights_kernel(ScoresView scores, float* weights) {
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, look_warps, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  const int t = tile.first + warp_index(), head = static_cast<int>(blockIdx.y), lane = lane_index();
  if (t >= at.queries) return;
  std::int64_t before = 0;  // number of entries of earlier segments
  for (int s = lane; s < tile.segment; s += warp_size) {
    before += std::int64_t{scores.segments.query_length[s]} * scores.segments.key_length[s];
  }
  for (int step = warp_size / 2; step > 0; step /= 2) {
    before += __shfl_xor_sync(full_warp, before, step);
  }
  float* const row = weights + before * scores.heads +
                     (std::int64_t{head} * at.queries + t) * std::int64_t{at.keys};

  const int p = at.offset() + t;
  float top = scores.sink ? scores.sink[head] : -INFINITY;
  for (int j = 0; j < at.keys; ++j) {
    if (!visible(scores, p, j) || (strict(scores.rule) && j == p)) {
      if (lane == 0) row[j] = 0;
      continue;
    }
    const float s = score(scores, at, t, head, j);
    if (lane == 0) row[j] = s;
    top = fmaxf(top, s);
  }
  __syncwarp();
  if (scores.rule != Rule::softmax) {
    if (lane > 0) return;
    const std::int64_t entry = (at.query + t) * scores.heads + head;
    return weigh_by_rule(scores, entry, row, scores.first_key(p),
                         p + (strict(scores.rule) ? 0 : 1));
  }
  float sum = 0;
  for (int j = scores.first_key(p) + lane; j <= p; j += warp_size) {
    row[j] = expf(row[j] - top);
    sum += row[j];
  }
  sum = warp_sum(sum) + (scores.sink ? expf(scores.sink[head] - top) : 0.0f);
  for (int j = scores.first_key(p) + lane; j <= p; j += warp_size) row[j] /= sum;
}

/// first[row] = key * heads + head for the first score of the row that is NaN or infinite, or -1 if
/// all are finite.
__global__ void __launch_bounds__(look_threads)
    bad_scores_kernel(ScoresView scores, bool own_key, std::int64_t* first) {
  const Tile tile =
      tile_at(scores.segments.query_begin, scores.segments.count, look_warps, blockIdx.x);
  const SegmentView at = scores.segments[tile.segment];
  const int t = tile.first + warp_index();
  if (t >= at.queries) return;
  const int p = at.offset() + t;
  std::int64_t found = -1;
  const int last = own_key ? p : p - 1;
  for (int j = scores.first_key(p); j <= last && found < 0; ++j) {
    for (int head = 0; head < scores.heads && found < 0; ++head) {
      if (!(fabsf(score(scores, at, t, head, j)) < INFINITY)) {
        found = std::int64_t{j} * scores.heads + head;
      }
    }
  }
  if (lane_index() == 0) first[at.query + t] = found;
}

/// Stores (segment, position, key, head) of the first bad score in `found`, or -1 four times if
/// there is none. Runs as one warp.
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
      found[1] = static_cast<std::int32_t>(at.offset() + row - at.query);
      found[2] = static_cast<std::int32_t>(first[row] / scores.heads);
      found[3] = static_cast<std::int32_t>(first[row] % scores.heads);
    }
    return;
  }
  if (lane < 4) found[lane] = -1;
}

}  // namespace

void run(CudaBackend& backend, const AttentionWeights& op) {
  const Scores& s = op.scores;
  launch(backend.stream(), {tile_slots(s.q.data.rows(), s.queries.count(), look_warps), s.q.heads},
         look_threads, 0, &weights_kernel, view(s, tensors_of(op.rule)), op.weights.data<float>());
}

void run(CudaBackend& backend, const FindBadScore& op) {
  const Scores& s = op.scores;
  const std::int64_t rows = s.q.data.rows();
  // Two i32 entries provide the memory of one 64-bit word per row.
  const Tensor first(backend, {std::max<std::int64_t>(1, 2 * rows)}, DType::i32);
  auto* const words = static_cast<std::int64_t*>(first.address());
  launch(backend.stream(), tile_slots(rows, s.queries.count(), look_warps), look_threads, 0,
         &bad_scores_kernel, view(s), op.own_key, words);
  launch(backend.stream(), 1, warp_size, 0, &first_bad_score, view(s), words, rows,
         op.found.data<std::int32_t>());
}

}  // namespace longhand::cuda
