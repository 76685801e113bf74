#include "core/contract/chacal.h"

#include <algorithm>

#include "core/cpu/attention/passes.h"

namespace longhand::cpu {

void run(CpuBackend& backend, const Chacal& op) {
  const Math math = backend.math(op.scores.math);
  const ExecContext exec = without_tiles(exec_of(backend));
  Forward pass = forward_of(op);
  pass.sink = op.sink;
  pass.log_sum = op.log_denominator;
  pass.earlier = op.earlier;
  pass.gamma = op.gamma;
  visit_activation(op.y.data.dtype(), [&]<class T>(T) {
    run_forward<T>(exec, math, pass,
                   {by_math(kernels_of<SoftmaxRule, T>(exec).forward, math),
                    &by_math(kernels_of<Chacal, T>(exec).forward, math)});
  });
}

void run(CpuBackend& backend, const ChacalBackward& op) {
  const Math math = backend.math(op.scores.math);
  const ExecContext exec = exec_of(backend);
  Backward pass = backward_of(op);
  pass.mean = op.y;
  pass.log_sum = op.log_denominator;
  pass.sink = op.sink;
  pass.dsink = op.dsink;
  // If gamma is 0 in every head, ChaCAL is softmax attention.
  const auto* const gamma = op.gamma.data<float>();
  if (!op.dgamma && std::all_of(gamma, gamma + op.gamma.size(), [](float g) { return g == 0; })) {
    return attend<SoftmaxRule>(softmax_exec(exec, math, op.scores.keys.longest()), math, pass);
  }
  pass.gamma = op.gamma;
  pass.dgamma = op.dgamma;
  visit_activation(op.dy.data.dtype(), [&]<class T>(T) {
    run_backward<T>(exec, pass, by_math(kernels_of<Chacal, T>(exec).backward, math), true);
  });
}

}  // namespace longhand::cpu
