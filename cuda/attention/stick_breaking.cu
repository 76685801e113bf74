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

  __device__ void weigh(const ScoresView& scores, int begin, int count, float* s, int stride) {
    for (int key = count - 1; key >= 0; --key) {
      float& x = s[key * stride];
      x = sees(scores, begin + key) ? Stick::weigh(score(scores, x, begin + key), left) : 0.0f;
    }
  }

  __device__ void start_gradients(const Tensors& tensors, std::int64_t entry) {
    rest = tensors.row_dots[entry];
  }
  /// P is rounded as the product P v rounds it. Stick::gradient() explains why.
  template <class Product>
  __device__ Gradient gradient(float s, float dp) {
    // If almost no weight is left for the remaining keys, `rest` is only a rounding error.
    if (finished()) rest = 0;
    const auto broken = Stick::broken(s);
    const float p = to_float(Product::element(Stick::weigh(broken, left)));
    return {p, Stick::gradient(broken.taken, p, dp, rest)};
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
