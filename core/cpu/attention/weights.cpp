#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/softmax/kernels.h"

/// Computes the matrix of attention weights, for inspection. Scores are computed as matrix
/// products, and each row of scores is then replaced by its weights.
namespace longhand::cpu {
namespace {

/// Number of queries whose scores are computed by one matrix product. The product includes all keys
/// up to the position of the last of these queries.
constexpr std::int64_t rows_at_once = 256;

/// Returns the sum of a row's weights if the softmax has a sink:
///   sum_j exp(s_j) / (sum_j exp(s_j) + exp(b))
float left_by(float sink, const float* scores, std::int64_t count) {
  const float top = std::max(sink, *std::max_element(scores, scores + count));
  double sum = 0;
  for (std::int64_t j = 0; j < count; ++j) sum += static_cast<double>(std::exp(scores[j] - top));
  return static_cast<float>(sum / (sum + static_cast<double>(std::exp(sink - top))));
}

/// Turns a row of scores into weights by a rule other than softmax.
void weigh_by_rule(Rule rule, float* row, std::int64_t count, float pull) {
  if (rule == Rule::entmax) {
    std::transform(row, row + count, row, [](float s) { return s / 2; });
    const float t = rules::Entmax::threshold(row, count);
    std::transform(row, row + count, row, [t](float x) {
      const float w = rules::Entmax::weight(x, t);
      return w * w;
    });
    return;
  }
  float left = 1, kept = 0, sum = 0;
  if (rule == Rule::stick) {
    for (std::int64_t j = count - 1; j >= 0; --j) {
      row[j] = rules::Stick::weigh(std::numbers::log2e_v<float> * row[j], left);
    }
    return;
  }
  for (std::int64_t j = count - 1; j >= 0; --j) row[j] = rules::Tra::logit(row[j], pull, kept);
  const float top = kept > 0 ? *std::max_element(row, row + count) : 0;
  for (std::int64_t j = 0; j < count; ++j) sum += row[j] = std::exp(row[j] - top);
  for (std::int64_t j = 0; j < count && kept > 0; ++j) row[j] /= sum;
}

GemmOperand operand(const Heads& x, std::int64_t head, std::int64_t row) {
  const std::int64_t columns = x.data.columns();
  const std::int64_t entry = row * columns + x.first_column + head * x.width;
  return {.data = static_cast<const std::byte*>(x.data.address()) +
                  static_cast<std::size_t>(entry) * size_of(x.data.dtype()),
          .type = x.data.dtype(),
          .ld = columns};
}

/// Computes P of one head in one segment, [queries, keys].
void weights_of(CpuBackend& backend, const Scores& scores, const RuleTensors& rule,
                const SegmentRows& at, std::int64_t head, float* weights) {
  const std::int64_t group = scores.q.heads / scores.k.heads;
  GemmOperand keys = operand(scores.k, head / group, at.key);
  keys.transposed = true;
  for (std::int64_t row = 0; row < at.queries; row += rows_at_once) {
    const std::int64_t rows = std::min(rows_at_once, at.queries - row);
    gemm({.m = rows,
          .n = at.offset() + row + rows,
          .k = scores.q.width,
          .a = operand(scores.q, head, at.query + row),
          .b = keys,
          .c = {.data = weights + row * at.keys, .ld = at.keys},
          .alpha = static_cast<float>(scores.scale),
          .math = Math::exact},
         backend.isa(), backend.threads(), backend.gemm_workspace());
  }
  const auto& softmax = kernels_for<SoftmaxKernels<float>>(backend.isa());
  const std::int64_t window = window_of(scores);
  const auto finish = [&](std::int64_t row) {
    const std::int64_t position = at.offset() + row;
    const std::int64_t first = std::max<std::int64_t>(0, position - window + 1);
    float* const all = weights + row * at.keys;
    float* const seen = all + first;
    const std::int64_t count = position + 1 - first;
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
    if (rule.rule != Rule::softmax) {
      const float pull =
          rule.count_bias ? *column_of<const float>(rule.count_bias, head, at.query + row).at : 0;
      const std::int64_t own = strict(rule.rule) ? 1 : 0;
      weigh_by_rule(rule.rule, seen, count - own, pull);
      std::fill(all, seen, 0.0f);
      std::fill(seen + count - own, all + at.keys, 0.0f);
      return;
    }
    const float left = rule.sink ? left_by(rule.sink.data<float>()[head], seen, count) : 1.0f;
    softmax.forward(seen, seen, {}, 0, 1, count, 0);
    if (rule.sink) times(left);
    std::fill(all, seen, 0.0f);
    std::fill(seen + count, all + at.keys, 0.0f);
  };
  parallel_for(backend.threads(), at.queries, rows_per_chunk(at.keys),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t row = begin; row < end; ++row) finish(row);
               });
}

}  // namespace

void run(CpuBackend& backend, const AttentionWeights& op) {
  const RuleTensors rule = tensors_of(op.rule);
  auto* weights = op.weights.data<float>();
  for (std::int64_t s = 0; s < op.scores.queries.count(); ++s) {
    const SegmentRows at = segment_rows(op.scores.queries, op.scores.keys, s);
    for (std::int64_t head = 0; head < op.scores.q.heads; ++head) {
      weights_of(backend, op.scores, rule, at, head, weights);
      weights += at.queries * at.keys;
    }
  }
}

}  // namespace longhand::cpu
