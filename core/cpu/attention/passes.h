#pragma once

#include <span>

#include "core/contract/attention.h"
#include "core/cpu/attention/work.h"
#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"

/// The passes of the attention family on the CPU. Each mechanism has a file, such as chacal.cpp,
/// which calls them with its tensors. Math::bf16 rounds the operands of the products to bf16.
/// Math::fast splits each operand into two bf16 parts if the processor has tile registers.
namespace longhand::cpu {

/// The arguments of a forward pass. Tensors that a mechanism does not have are empty.
struct Forward {
  const Scores& scores;
  const Heads &v, &y;
  Tensor sink = {}, pull = {};
  Tensor log_sum = {};  // saved: one number per row (for entmax: the threshold)
  Heads mean = {};      // saved by entmax: EntmaxRule::root_mean
  Heads residue = {};   // saved in bf16 by stick-breaking and TRA: the rounding error of y
  // ChaCAL and DeltaFormer: the outputs at positions before the first query
  Heads earlier = {};
  Tensor gamma = {};  // ChaCAL
  Tensor gain = {};   // DeltaFormer
  Heads read = {};    // saved by DeltaFormer: z_i = sum_j P_ij y_j
};

/// The arguments of a backward pass. `v` contains the value of each key. For DeltaFormer, whose
/// rows read earlier outputs, `v` is y.
struct Backward {
  const Scores& scores;
  const Heads &v, &dy;
  const HeadsTarget &dq, &dk, &dv;
  ScoreTargets dscores = {};
  Heads mean = {};  // D_i = dy_i . mean_i: y, or EntmaxRule::root_mean
  Heads residue = {};
  Tensor log_sum = {}, sink = {}, pull = {};
  Target dsink = {}, dpull = {};
  Tensor gamma = {};  // ChaCAL
  Target dgamma = {};
  Tensor gain = {};  // DeltaFormer
  Heads read = {};
  Target dgain = {};
};

/// The arguments that all forward (or all backward) operations have. The caller adds the arguments
/// of its mechanism.
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

/// The kernels of a forward pass. If `solving` is not null, the output of a row depends on outputs
/// of earlier rows, and `solving` computes it. The kernels `plain` then compute only the heads of
/// ChaCAL with gamma = 0.
template <class T>
struct ForwardKernels {
  const AttentionKernels<T>& plain;
  const AttentionKernels<T>* solving = nullptr;
};

// These functions are defined for f32 and bf16. If `solves` is true, the output of a row depends on
// outputs of earlier rows.
template <class T>
void run_forward(const Crew& crew, Math math, const Forward& f, const ForwardKernels<T>& kernels);
template <class T>
void run_backward(const Crew& crew, const Backward& b, const AttentionGradientKernels<T>& kernels,
                  bool solves);

/// The kernels for a math mode.
template <class Kernels>
const Kernels& by_math(const ByProduct<Kernels>& all, Math math) {
  return math == Math::bf16 ? all.bf16 : math == Math::fast ? all.fast : all.exact;
}
template <class Mechanism, class T>
const PassKernels<T>& kernels_of(const Crew& crew) {
  const auto& all = kernels_for<KernelsOf<Mechanism>>(crew.isa);
  if constexpr (std::is_same_v<T, float>) {
    return all.of_f32;
  } else {
    return all.of_bf16;
  }
}

inline Crew crew_of(CpuBackend& backend) { return {backend.threads(), backend.isa()}; }

/// Runs the forward or backward pass of a rule.
template <class Mechanism>
void attend(const Crew& crew, Math math, const Forward& f) {
  visit_activation(f.y.data.dtype(), [&]<class T>(T) {
    run_forward<T>(crew, math, f, {by_math(kernels_of<Mechanism, T>(crew).forward, math)});
  });
}
template <class Mechanism>
void attend(const Crew& crew, Math math, const Backward& b) {
  visit_activation(b.dy.data.dtype(), [&]<class T>(T) {
    run_backward<T>(crew, b, by_math(kernels_of<Mechanism, T>(crew).backward, math), false);
  });
}

template <class Mechanism, class Pass>
void attend(CpuBackend& backend, const Pass& pass) {
  attend<Mechanism>(crew_of(backend), backend.math(pass.scores.math), pass);
}

/// Returns a crew without tile registers if products on tiles are not worthwhile, and otherwise
/// `crew`. Only softmax has products on tiles.
Crew softmax_crew(const Crew& crew, Math math, std::int64_t longest);
/// Returns the crew with an instruction set that has no tile registers.
Crew without_tiles(const Crew& crew);

/// Replaces the scores of a row by its weights. The scores are those of the keys that the query
/// sees. `query` is the row of the query in the tensors.
using WeighRow = FunctionRef<void(std::span<float> row, std::int64_t query, std::int64_t head)>;
/// Writes the weights of all rows, for inspection. If `own_key` is false, a query does not see the
/// key at its own position.
void write_weights(CpuBackend& backend, const AttentionWeights& op, bool own_key, WeighRow weigh);

}  // namespace longhand::cpu
