#include <algorithm>

#include "core/cpu/attention/passes.h"

/// Computes the matrix of attention weights, for inspection. Scores are computed as matrix
/// products, and each row of scores is then replaced by its weights.
namespace longhand::cpu {
namespace {

/// Number of queries whose scores are computed by one matrix product. The matrix product includes
/// all keys that the last of these queries sees.
constexpr std::int64_t rows_at_once = 256;

GemmOperand operand(const Heads& x, std::int64_t head, std::int64_t row) {
  const std::int64_t columns = x.data.columns();
  const std::int64_t entry = row * columns + x.first_column + head * x.width;
  return {.data = static_cast<const std::byte*>(x.data.address()) +
                  static_cast<std::size_t>(entry) * size_of(x.data.dtype()),
          .type = x.data.dtype(),
          .ld = columns};
}

/// Computes the attention weights of one head in one segment (sequence), [queries, keys].
void weights_of(CpuBackend& backend, const Scores& scores, bool own_key, WeighRow weigh,
                const SegmentRows& at, std::int64_t head, float* weights) {
  const std::int64_t group = scores.q.heads / scores.k.heads;
  GemmOperand keys = operand(scores.k, head / group, at.key);
  keys.transposed = true;
  const std::int64_t offset = first_position(scores, at);
  for (std::int64_t row = 0; row < at.queries; row += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, at.queries - row);
    gemm({.m = rows,
          .n = std::min(at.keys, offset + row + rows),
          .k = scores.q.width,
          .a = operand(scores.q, head, at.query + row),
          .b = keys,
          .c = {.data = weights + row * at.keys, .ld = at.keys},
          .alpha = static_cast<float>(scores.scale),
          .math = Math::exact},
         backend.isa(), backend.threads(), backend.gemm_workspace());
  }
  const std::int64_t window = window_of(scores);
  const auto finish = [&](std::int64_t row) {
    const std::int64_t position = offset + row;
    const std::int64_t first = std::max<std::int64_t>(0, position - window + 1);
    float* const all = weights + row * at.keys;
    float* const seen = all + first;
    const std::int64_t count = std::min(at.keys, position + 1) - first;
    const auto times = [&](float factor) {
      std::transform(seen, seen + count, seen, [&](float s) { return factor * s; });
    };
    if (scores.multiplier)
      times(*column_of<const float>(scores.multiplier, head, at.query + row).at);
    if (scores.decay) {
      const auto shift = column_of<const float>(scores.decay, head, at.key);
      const float own = *shift.row(position);
      for (std::int64_t j = 0; j < count; ++j) seen[j] += own - *shift.row(first + j);
    }
    const std::int64_t own = own_key ? 0 : 1;
    weigh({seen, static_cast<std::size_t>(count - own)}, at.query + row, head);
    std::fill(all, seen, 0.0f);
    std::fill(seen + count - own, all + at.keys, 0.0f);
  };
  parallel_for(backend.threads(), at.queries, rows_per_chunk(at.keys),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) finish(row);
               });
}

}  // namespace

void write_weights(CpuBackend& backend, const AttentionWeights& op, bool own_key, WeighRow weigh) {
  auto* weights = op.weights.data<float>();
  for (std::int64_t s = 0; s < op.scores.queries.count(); ++s) {
    const SegmentRows at = segment_rows(op.scores.queries, op.scores.keys, s);
    for (std::int64_t head = 0; head < op.scores.q.heads; ++head) {
      weights_of(backend, op.scores, own_key, weigh, at, head, weights);
      weights += at.queries * at.keys;
    }
  }
}

}  // namespace longhand::cpu
