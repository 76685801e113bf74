#include "core/rules/tra.h"

#include <limits>

#include "cuda/attention/inspect.h"
#include "cuda/attention/rule_forward.h"
#include "cuda/attention/rule_gradients.h"

/// Threshold relative attention (core/contract/attention.h). For each query, the forward pass keeps
/// the largest logit so far and the sum of the powers 2^(logit - largest logit), as softmax
/// attention does.
namespace longhand::cuda {

using namespace walks;
using rules::Tra;

namespace {

struct TraWalker : Query<Tra> {
  struct Tensors {
    const float* count_bias = nullptr;
    // Logarithm of each row's softmax denominator. The forward pass writes it unless it is null.
    float* log_denominator = nullptr;
    // Backward pass only: dy . (y + residue) of each query and head, where residue is the rounding
    // error of y.
    const float* row_dots = nullptr;
    // Backward pass only: receives the gradient of count_bias. Null if it is not required.
    float* dcount_bias = nullptr;
    // Backward pass only: true if the gradient is added to dcount_bias, false if it replaces it.
    bool add = false;
  };
  static constexpr bool normalized = true;
  float bias = 0;      // TraRule::count_bias of this query, times log2 e
  float positive = 0;  // number of keys with a positive score so far
  // Forward pass: the largest logit so far (level), and the sum of 2^(logit - level) so far
  // (total).
  float level = 0, total = 0;
  // Backward pass. log_denominator: saved by the forward pass. d: the dot product
  // dy . (y + residue), where residue is the rounding error of y. bias_gradient: the gradient of
  // the query's count_bias, summed over the keys that this lane has processed so far.
  float log_denominator = 0, d = 0, bias_gradient = 0;

  __device__ void start(const ScoresView&, const Tensors& tensors, std::int64_t entry) {
    bias = tensors.count_bias[entry] * log2_of_e;
  }

  template <int lanes>
  __device__ float weigh(Run& run) {
    const bool first = positive == 0;
    float count = count_at_run<lanes>(run), top = -std::numeric_limits<float>::infinity();
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      run.scores[n] = Tra::logit(run.scores[n], bias, count);
      top = fmaxf(top, run.scores[n]);
    }
    top = largest_of_runs<lanes>(top);
    top = positive == 0 ? level : first ? top : fmaxf(level, top);
    const float shrink = first ? 1.0f : power_of_two(level - top);
    level = top;
    float sum = 0;
#pragma unroll
    for (float& x : run.scores) {
      x = power_of_two(x - level);
      sum += x;
    }
    total = total * shrink + sum_of_runs<lanes>(sum);
    return shrink;
  }
  /// Returns how many keys after this lane's run have a positive score. Adds the number of positive
  /// scores in all runs to `positive`. A key that the query does not see has the score 0.
  template <int lanes>
  __device__ float count_at_run(const Run& run) {
    float own = 0;
#pragma unroll
    for (const float x : run.scores) own += x > 0 ? 1.0f : 0.0f;
    return pass_along<lanes>(positive, own, [](float all, float more) { return all + more; });
  }
  __device__ float share() const { return positive == 0 ? 0.0f : 1.0f / total; }
  __device__ void save(const Tensors& tensors, std::int64_t entry) const {
    if (!tensors.log_denominator) return;
    tensors.log_denominator[entry] = positive == 0 ? 0.0f : (level + log2f(total)) * ln_of_2;
  }

  __device__ void start_gradients(const Tensors& tensors, std::int64_t entry) {
    d = tensors.row_dots[entry];
    log_denominator = tensors.log_denominator[entry];
  }
  template <class Product, int lanes>
  __device__ void gradients(Run& run, float (&dp)[run_keys]) {
    float count = count_at_run<lanes>(run);
#pragma unroll
    for (int n = run_keys - 1; n >= 0; --n) {
      const float logit = Tra::logit(run.scores[n], bias, count);
      const float p = power_of_two(logit - log_denominator * log2_of_e);
      dp[n] = Tra::gradient(logit, log_denominator, p, dp[n], d);
      bias_gradient += dp[n] * count;
      run.scores[n] = p;
    }
  }
  template <int lanes>
  __device__ void finish_gradients() {
    bias_gradient = sum_of_runs<lanes>(bias_gradient);
  }
  __device__ void store_gradients(const Tensors& tensors, std::int64_t entry) const {
    float* const to = tensors.dcount_bias;
    if (to) to[entry] = tensors.add ? to[entry] + bias_gradient : bias_gradient;
  }

  __device__ Pair<float> state() const { return {positive, 0}; }
  __device__ void resume(Pair<float> state) { positive = state.first; }
};

struct TraWeights {
  static constexpr bool own_key = Tra::own_key;
  const float* count_bias;
  __device__ void weigh(const ScoreRow& row) const {
    if (lane_index() > 0) return;
    float positive = 0, top = 0, sum = 0;
    for (int j = row.end - 1; j >= row.first; --j) {
      float& s = row.at[j];
      const bool first = positive == 0;
      s = Tra::logit(s, count_bias[row.entry], positive);
      if (positive > 0) top = first ? s : fmaxf(top, s);
    }
    for (int j = row.first; j < row.end; ++j) {
      sum += row.at[j] = positive > 0 ? expf(row.at[j] - top) : 0.0f;
    }
    for (int j = row.first; j < row.end && positive > 0; ++j) row.at[j] /= sum;
  }
};

}  // namespace

void run(CudaBackend& backend, const Attention& op, const TraRule& rule) {
  ForwardTask task = forward_task(op);
  task.residue = view(rule.residue);
  attend_by_walk<TraWalker>(backend, op, task,
                            {.count_bias = pointer(rule.count_bias),
                             .log_denominator = mutable_pointer(rule.log_denominator)});
}

void run(CudaBackend& backend, const AttentionBackward& op, const TraGradient& rule) {
  const Tensor dots = row_dots(backend, Math::exact, op.dy, rule.y, rule.residue);
  gradients_by_walk<TraWalker>(backend, op,
                               {.count_bias = pointer(rule.count_bias),
                                .log_denominator = mutable_pointer(rule.log_denominator),
                                .row_dots = dots.data<float>(),
                                .dcount_bias = mutable_pointer(rule.dcount_bias.tensor),
                                .add = rule.dcount_bias.add},
                               static_cast<bool>(rule.dcount_bias));
}

void run(CudaBackend& backend, const AttentionWeights& op, const TraRule& rule) {
  write_weights(backend, op, TraWeights{pointer(rule.count_bias)});
}

}  // namespace longhand::cuda
