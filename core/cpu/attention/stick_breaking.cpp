#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const StickBreakingRule& rule) {
  Forward pass = forward_of(op);
  pass.residue = rule.residue;
  attend<StickBreakingRule>(backend, pass);
}

void run(CpuBackend& backend, const AttentionBackward& op, const StickBreakingGradient& rule) {
  Backward pass = backward_of(op);
  pass.mean = rule.y;
  pass.residue = rule.residue;
  attend<StickBreakingRule>(backend, pass);
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
