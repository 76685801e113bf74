#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const EntmaxRule& rule) {
  Forward pass = forward_of(op);
  pass.log_sum = rule.threshold;
  pass.mean = rule.root_mean;
  attend<EntmaxRule>(backend, pass);
}

void run(CpuBackend& backend, const AttentionBackward& op, const EntmaxGradient& rule) {
  Backward pass = backward_of(op);
  pass.mean = rule.root_mean;
  pass.log_sum = rule.threshold;
  attend<EntmaxRule>(backend, pass);
}

void run(CpuBackend& backend, const AttentionWeights& op, const EntmaxRule&) {
  using Formulas = EntmaxRule::Formulas;
  write_weights(backend, op, Formulas::own_key,
                [](std::span<float> row, std::int64_t, std::int64_t) {
                  for (float& x : row) x *= Formulas::unit;
                  const float t = Formulas::threshold(row.data(), std::ssize(row));
                  for (float& x : row) {
                    const float w = Formulas::weight(x, t);
                    x = w * w;
                  }
                });
}

}  // namespace longhand::cpu
