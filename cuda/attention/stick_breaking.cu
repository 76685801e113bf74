#include "core/rules/stick_breaking.h"
#include "cuda/attention/inspect.h"
#include "cuda/attention/rule_forward.h"
#include "cuda/attention/rule_gradients.h"

/// Stick-breaking attention (core/contract/attention.h). Each query has a stick of length 1, from
/// which its keys take their weights one after another. A query is finished when almost nothing of
/// its stick is left.
namespace longhand::cuda {

using namespace walks;
using rules::Stick;

namespace {

struct StickWalker : Query<Stick> {
  struct Tensors {
    // dy . (y + residue), where residue is the rounding error of y; only in the backward pass
    const float* row_dots = nullptr;
  };
  float left = 0;  // weight that is left for the remaining keys
  float rest = 0;  // backward pass: the sum of P dP over the remaining keys

  __device__ void start(const ScoresView&, const Tensors&, std::int64_t) { left = 1; }
  __device__ bool finished() const { return left < Stick::spent; }

  /// Each lane first breaks a stick of length 1 for its run of keys. The weights are then
  /// multiplied by the length of the stick that reaches the run.
  template <int lanes>
  __device__ void weigh(Run& run) {
    float kept = 1;
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      run.scores[n] = run.sees(n) ? Stick::weigh(run.scores[n], kept) : 0.0f;
    }
    const float reached = stick_at_run<lanes>(kept);
#pragma unroll
    for (float& weight : run.scores) weight *= reached;
  }
  /// Returns the length of the stick that reaches this lane's run of keys. `kept` is the share of
  /// this length that remains after the run.
  template <int lanes>
  __device__ float stick_at_run(float kept) {
    return pass_along<lanes>(left, kept, [](float length, float share) { return length * share; });
  }

  __device__ void start_gradients(const Tensors& tensors, std::int64_t entry) {
    rest = tensors.row_dots[entry];
  }
  /// P is rounded as the product P v rounds it. Stick::gradient() explains why.
  template <class Product, int lanes>
  __device__ void gradients(Run& run, float (&dp)[run_keys]) {
    // For each key of the run. before: the length of the stick that reaches the key if the length 1
    // reaches the run. taken: the share of this length that the key takes.
    float taken[run_keys], before[run_keys], kept = 1;
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      const auto broken = Stick::broken(run.scores[n]);
      before[n] = kept;
      taken[n] = run.sees(n) ? broken.taken : 0.0f;
      run.scores[n] = run.sees(n) ? Stick::weigh(broken, kept) : 0.0f;
    }
    const float reached = stick_at_run<lanes>(kept);
    float sum = 0;
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      run.scores[n] = to_float(Product::element(run.scores[n] * reached));
      sum += run.scores[n] * dp[n];
    }
    float rest_here =
        pass_along<lanes>(rest, sum, [](float all, float of_run) { return all - of_run; });
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      // rest_here is the sum of P dP over the remaining keys, computed by subtraction. If almost no
      // weight is left for these keys, rest_here is only a rounding error.
      if (before[n] * reached < Stick::spent) rest_here = 0;
      dp[n] = Stick::gradient(taken[n], run.scores[n], dp[n], rest_here);
    }
  }

  __device__ Pair<float> state() const { return {left, rest}; }
  __device__ void resume(Pair<float> state) {
    left = state.first;
    rest = state.second;
  }
};

struct StickWeights {
  static constexpr bool own_key = Stick::own_key;
  __device__ void weigh(const ScoreRow& row) const {
    if (lane_index() > 0) return;
    float left = 1;
    for (int j = row.end - 1; j >= row.first; --j) {
      row.at[j] = Stick::weigh(row.at[j] * log2_of_e, left);
    }
  }
};

}  // namespace

void run(CudaBackend& backend, const Attention& op, const StickBreakingRule& rule) {
  ForwardTask task = forward_task(op);
  task.residue = view(rule.residue);
  attend_by_walk<StickWalker>(backend, op, task, {});
}

void run(CudaBackend& backend, const AttentionBackward& op, const StickBreakingGradient& rule) {
  const Tensor dots = row_dots(backend, backend.math(op.scores.math), op.dy, rule.y, rule.residue);
  gradients_by_walk<StickWalker>(backend, op, {.row_dots = dots.data<float>()});
}

void run(CudaBackend& backend, const AttentionWeights& op, const StickBreakingRule&) {
  write_weights(backend, op, StickWeights{});
}

}  // namespace longhand::cuda
