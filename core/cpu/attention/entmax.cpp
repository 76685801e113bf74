#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const EntmaxRule& rule) {
  attend<EntmaxRule>(crew_of(backend), backend.math(op.scores.math),
                     Forward{.scores = op.scores,
                             .v = op.v,
                             .y = op.y,
                             .log_sum = rule.threshold,
                             .mean = rule.root_mean});
}

void run(CpuBackend& backend, const AttentionBackward& op, const EntmaxGradient& rule) {
  attend<EntmaxRule>(crew_of(backend), backend.math(op.scores.math),
                     Backward{.scores = op.scores,
                              .v = op.v,
                              .dy = op.dy,
                              .dq = op.dq,
                              .dk = op.dk,
                              .dv = op.dv,
                              .dscores = op.dscores,
                              .mean = rule.root_mean,
                              .log_sum = rule.threshold});
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
