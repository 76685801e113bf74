#include <numbers>

#include "core/cpu/attention/passes.h"
#include "core/elementary.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Attention& op, const SigmoidRule&) {
  attend<SigmoidRule>(backend, forward_of(op));
}

void run(CpuBackend& backend, const AttentionBackward& op, const SigmoidGradient&) {
  attend<SigmoidRule>(backend, backward_of(op));
}

void run(CpuBackend& backend, const AttentionWeights& op, const SigmoidRule&) {
  using Formulas = SigmoidRule::Formulas;
  write_weights(
      backend, op, Formulas::own_key, [](std::span<float> row, std::int64_t, std::int64_t) {
        const auto log_count = static_cast<float>(std::numbers::log2e *
                                                  elementary::log(static_cast<double>(row.size())));
        for (float& x : row) x = Formulas::weight(Formulas::unit * x - log_count);
      });
}

}  // namespace longhand::cpu
