#include "core/contract/deltaformer.h"

#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const DeltaFormer& op) {
  const Math math = backend.math(op.math);
  const ExecContext exec = exec_of(backend);
  const Scores scores = plain_scores(op);
  const Forward pass{.scores = scores,
                     .v = op.v,
                     .y = op.y,
                     .log_sum = op.log_denominator,
                     .earlier = op.earlier,
                     .gain = op.gain,
                     .read = op.read};
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    const auto& solving = by_math(kernels_of<DeltaFormer, T>(exec).forward, math);
    run_forward<T>(exec, math, pass, {solving, &solving});
  });
}

void run(CpuBackend& backend, const DeltaFormerBackward& op) {
  const Math math = backend.math(op.math);
  const ExecContext exec = exec_of(backend);
  const Scores scores = plain_scores(op);
  const Backward pass{.scores = scores,
                      .v = op.y,
                      .dy = op.dy,
                      .dq = op.dq,
                      .dk = op.dk,
                      .dv = op.dv,
                      .mean = op.y,
                      .log_sum = op.log_denominator,
                      .gain = op.gain,
                      .read = op.read,
                      .dgain = op.dgain};
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    run_backward<T>(exec, pass, by_math(kernels_of<DeltaFormer, T>(exec).backward, math), true);
  });
}

}  // namespace longhand::cpu
