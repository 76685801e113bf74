#include <algorithm>

#include "core/cpu/attention/passes.h"
#include "core/elementary.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const TraRule& rule) {
  Forward pass = forward_of(op);
  pass.pull = rule.count_bias;
  pass.log_sum = rule.log_denominator;
  pass.residue = rule.residue;
  attend<TraRule>(backend, pass);
}

void run(CpuBackend& backend, const AttentionBackward& op, const TraGradient& rule) {
  Backward pass = backward_of(op);
  pass.mean = rule.y;
  pass.residue = rule.residue;
  pass.log_sum = rule.log_denominator;
  pass.pull = rule.count_bias;
  pass.dpull = rule.dcount_bias;
  attend<TraRule>(backend, pass);
}

void run(CpuBackend& backend, const AttentionWeights& op, const TraRule& rule) {
  using Formulas = TraRule::Formulas;
  const auto* const count_bias = rule.count_bias.data<float>();
  const std::int64_t heads = op.scores.q.heads;
  write_weights(backend, op, Formulas::own_key,
                [=](std::span<float> row, std::int64_t query, std::int64_t head) {
                  const float pull = count_bias[query * heads + head];
                  float kept = 0, sum = 0;
                  for (auto s = row.rbegin(); s != row.rend(); ++s) {
                    *s = Formulas::logit(*s, pull, kept);
                  }
                  const float top = kept > 0 ? *std::max_element(row.begin(), row.end()) : 0;
                  for (float& x : row) sum += x = static_cast<float>(elementary::exp(x - top));
                  for (float& x : row) x = kept > 0 ? x / sum : x;
                });
}

}  // namespace longhand::cpu
