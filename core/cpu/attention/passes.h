#pragma once

#include <span>

#include "core/contract/attention.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

/// The forward and backward passes of all attention mechanisms on the CPU. Each mechanism has a
/// file, such as chacal.cpp, which calls the passes with the mechanism's tensors. Math::bf16 rounds
/// the operands of the products to bf16. Math::fast splits each operand into two bf16 parts if the
/// processor has tile registers.
namespace longhand::cpu {

/// The arguments of a forward pass. Tensors that a mechanism does not have are empty.
struct Forward {
  const Scores& scores;
  const Heads &v, &y;
  Tensor sink = {}, pull = {};
  Tensor log_sum = {};  // saved: the log of each row's softmax denominator (entmax: threshold)
  Heads mean = {};      // saved by entmax: mean of v, weighted by the square roots of P
  Heads residue = {};   // stick-breaking and TRA, if y is bf16: the rounding error of y
  // ChaCAL and DeltaFormer: the outputs at positions before the first query
  Heads earlier = {};
  Tensor gamma = {};  // ChaCAL only
  Tensor gain = {};   // DeltaFormer only
  Heads read = {};    // saved by DeltaFormer: z_i = sum_j P_ij y_j
};

/// The arguments of a backward pass. `v` contains the value of each key. For DeltaFormer, whose
/// rows read outputs of earlier rows, `v` contains the outputs y.
struct Backward {
  const Scores& scores;
  const Heads &v, &dy;
  const HeadsTarget &dq, &dk, &dv;
  ScoreTargets dscores = {};
  // y, or for entmax the mean of v weighted by the square roots of P. Its dot product with dy is
  // D_i, a term of dS.
  Heads mean = {};
  Heads residue = {};
  Tensor log_sum = {}, sink = {}, pull = {};
  Target dsink = {}, dpull = {};
  Tensor gamma = {};  // ChaCAL only
  Target dgamma = {};
  Tensor gain = {};  // DeltaFormer only
  Heads read = {};
  Target dgain = {};
};

/// forward_of returns the arguments that all forward operations have in common, and backward_of
/// those of all backward operations. The caller adds the arguments of its mechanism.
template <class Op>
Forward forward_of(const Op& op) {
  return {.scores = op.scores, .v = op.v, .y = op.y};
}
template <class Op>
Backward backward_of(const Op& op) {
  return {.scores = op.scores,
          .v = op.v,
          .dy = op.dy,
          .dq = op.dq,
          .dk = op.dk,
          .dv = op.dv,
          .dscores = op.dscores};
}

/// The kernels of a forward pass. `solving` is for ChaCAL and DeltaFormer, in which the output of a
/// row depends on the outputs of earlier rows. For all other mechanisms, `solving` is null and
/// `plain` computes the outputs. `plain` also computes the heads of ChaCAL whose parameter gamma is
/// 0, because they are softmax attention.
template <class T>
struct ForwardKernels {
  const AttentionKernels<T>& plain;
  const AttentionKernels<T>* solving = nullptr;
};

// run_forward and run_backward are defined for f32 and bf16. `solves` is true for ChaCAL and
// DeltaFormer, whose outputs depend on the outputs of earlier rows.
template <class T>
void run_forward(const ExecContext& exec, Math math, const Forward& f,
                 const ForwardKernels<T>& kernels);
template <class T>
void run_backward(const ExecContext& exec, const Backward& b,
                  const AttentionGradientKernels<T>& kernels, bool solves);

/// Returns the kernels for a math mode.
template <class Kernels>
const Kernels& by_math(const ByProduct<Kernels>& all, Math math) {
  return math == Math::bf16 ? all.bf16 : math == Math::fast ? all.fast : all.exact;
}
template <class Mechanism, class T>
const PassKernels<T>& kernels_of(const ExecContext& exec) {
  const auto& all = kernels_for<KernelsOf<Mechanism>>(exec.isa);
  if constexpr (std::is_same_v<T, float>) {
    return all.of_f32;
  } else {
    return all.of_bf16;
  }
}

inline ExecContext exec_of(CpuBackend& backend) { return {backend.threads(), backend.isa()}; }

/// Runs the forward or backward pass of a rule, with the kernels for the type of its tensors.
template <class Mechanism>
void attend(const ExecContext& exec, Math math, const Forward& f) {
  visit_activation(f.y.data.dtype(), [&]<class T>(T) {
    run_forward<T>(exec, math, f, {by_math(kernels_of<Mechanism, T>(exec).forward, math)});
  });
}
template <class Mechanism>
void attend(const ExecContext& exec, Math math, const Backward& b) {
  visit_activation(b.dy.data.dtype(), [&]<class T>(T) {
    run_backward<T>(exec, b, by_math(kernels_of<Mechanism, T>(exec).backward, math), false);
  });
}

template <class Mechanism, class Pass>
void attend(CpuBackend& backend, const Pass& pass) {
  attend<Mechanism>(exec_of(backend), backend.math(pass.scores.math), pass);
}

/// Returns the threads of `exec` and the instruction set for a softmax pass. The instruction set
/// includes tile registers only if matrix products on them save time, which depends on `math` and
/// `longest`, the length of the longest sequence.
ExecContext softmax_exec(const ExecContext& exec, Math math, std::int64_t longest);
/// Returns the threads of `exec` with an instruction set that has no tile registers.
ExecContext without_tiles(const ExecContext& exec);

/// A function that replaces a row of scores by its weights. `row` contains only the scores of keys
/// that the query sees. `query` is the index of the query's row in the tensors.
using WeighRow = FunctionRef<void(std::span<float> row, std::int64_t query, std::int64_t head)>;
/// Writes the weights of all rows, for inspection. If `own_key` is false, a query does not see the
/// key at its own position.
void write_weights(CpuBackend& backend, const AttentionWeights& op, bool own_key, WeighRow weigh);

}  // namespace longhand::cpu
