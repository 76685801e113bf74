#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const StickBreakingRule& rule) {
  attend<StickBreakingRule>(
      crew_of(backend), backend.math(op.scores.math),
      Forward{.scores = op.scores, .v = op.v, .y = op.y, .residue = rule.residue});
}

void run(CpuBackend& backend, const AttentionBackward& op, const StickBreakingGradient& rule) {
  attend<StickBreakingRule>(crew_of(backend), backend.math(op.scores.math),
                            Backward{.scores = op.scores,
                                     .v = op.v,
                                     .dy = op.dy,
                                     .dq = op.dq,
                                     .dk = op.dk,
                                     .dv = op.dv,
                                     .dscores = op.dscores,
                                     .mean = rule.y,
                                     .residue = rule.residue});
}

void run(CpuBackend& backend, const AttentionWeights& op, const StickBreakingRule&) {
  using Formulas = StickBreakingRule::Formulas;
  write_weights(backend, op, Formulas::own_key,
                [](std::span<float> row, std::int64_t, std::int64_t) {
                  float left = 1;
                  for (auto s = row.rbegin(); s != row.rend(); ++s) {
                    *s = Formulas::weigh(Formulas::unit * *s, left);
                  }
                });
}

}  // namespace longhand::cpu
