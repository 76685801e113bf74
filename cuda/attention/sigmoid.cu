#include "core/rules/sigmoid.h"
#include "cuda/attention/inspect.h"
#include "cuda/attention/rule_forward.h"
#include "cuda/attention/rule_gradients.h"

/// Sigmoid attention (core/contract/attention.h). The weight of a key depends on its own score
/// only.
namespace longhand::cuda {

using namespace walks;
using rules::Sigmoid;

namespace {

struct SigmoidWalker : Query<Sigmoid> {
  struct Tensors {};
  float log_count = 0;  // log2(n), where n is the number of keys that the query sees

  __device__ void start(const ScoresView& scores, const Tensors&, std::int64_t) {
    log_count = log2f(static_cast<float>(position + 1 - scores.first_key(position)));
  }

  template <int lanes>
  __device__ void weigh(Run& run) const {
#pragma unroll
    for (int n = 0; n < run_keys; ++n) {
      run.scores[n] = run.sees(n) ? Sigmoid::weight(run.scores[n] - log_count) : 0.0f;
    }
  }

  __device__ Gradient gradient(float s, float dp) {
    const float p = Sigmoid::weight(s - log_count);
    return {p, Sigmoid::gradient(p, dp)};
  }
};

struct SigmoidWeights {
  static constexpr bool own_key = Sigmoid::own_key;
  __device__ void weigh(const ScoreRow& row) const {
    const float log_count = log2f(static_cast<float>(row.end - row.first));
    for (int j = row.first + lane_index(); j < row.end; j += warp_size) {
      row.at[j] = Sigmoid::weight(row.at[j] * log2_of_e - log_count);
    }
  }
};

}  // namespace

void run(CudaBackend& backend, const Attention& op, const SigmoidRule&) {
  attend_by_walk<SigmoidWalker>(backend, op, forward_task(op), {});
}

void run(CudaBackend& backend, const AttentionBackward& op, const SigmoidGradient&) {
  gradients_by_walk<SigmoidWalker>(backend, op, {});
}

void run(CudaBackend& backend, const AttentionWeights& op, const SigmoidRule&) {
  write_weights(backend, op, SigmoidWeights{});
}

}  // namespace longhand::cuda
