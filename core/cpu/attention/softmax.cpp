#include <algorithm>

#include "core/cpu/attention/passes.h"
#include "core/cpu/softmax/kernels.h"
#include "core/elementary.h"

namespace longhand::cpu {
namespace {

/// Minimum sequence length for products on tile registers in Math::fast, which split each operand
/// into two bf16 parts. For shorter sequences, packing costs more time than these products save.
constexpr std::int64_t least_split_keys = 256;

/// Returns the sum of a row's weights if the softmax has a sink, a score b without a value. With
/// the scores s_j of the row, the sum is
///   sum_j exp(s_j) / (sum_j exp(s_j) + exp(b))
float left_by(float sink, std::span<const float> scores) {
  const float top = std::max(sink, *std::max_element(scores.begin(), scores.end()));
  double sum = 0;
  for (const float s : scores) sum += elementary::exp(s - top);
  return static_cast<float>(sum / (sum + elementary::exp(sink - top)));
}

}  // namespace

ExecContext without_tiles(const ExecContext& exec) {
  return {exec.threads, std::min(exec.isa, Isa::avx512bf16)};
}

ExecContext softmax_exec(const ExecContext& exec, Math math, std::int64_t longest) {
  const bool tiles = math == Math::bf16 || (math == Math::fast && longest >= least_split_keys);
  return tiles ? exec : without_tiles(exec);
}

void run(CpuBackend& backend, const Attention& op, const SoftmaxRule& rule) {
  Forward pass = forward_of(op);
  pass.sink = rule.sink;
  pass.log_sum = rule.log_denominator;
  const Math math = backend.math(op.scores.math);
  attend<SoftmaxRule>(softmax_exec(exec_of(backend), math, op.scores.keys.longest()), math, pass);
}

void run(CpuBackend& backend, const AttentionBackward& op, const SoftmaxGradient& rule) {
  Backward pass = backward_of(op);
  pass.mean = rule.y;
  pass.log_sum = rule.log_denominator;
  pass.sink = rule.sink;
  pass.dsink = rule.dsink;
  const Math math = backend.math(op.scores.math);
  attend<SoftmaxRule>(softmax_exec(exec_of(backend), math, op.scores.keys.longest()), math, pass);
}

void run(CpuBackend& backend, const AttentionWeights& op, const SoftmaxRule& rule) {
  const auto& softmax = kernels_for<SoftmaxKernels<float>>(backend.isa());
  const bool own_key = SoftmaxRule::Formulas::own_key;
  write_weights(backend, op, own_key, [&](std::span<float> row, std::int64_t, std::int64_t head) {
    // left_by() reads the scores, so it must run before softmax.forward() replaces them by weights.
    const float left = rule.sink ? left_by(rule.sink.data<float>()[head], row) : 1.0f;
    softmax.forward(row.data(), row.data(), {}, 0, 1, std::ssize(row), 0);
    if (!rule.sink) return;
    for (float& p : row) p *= left;
  });
}

}  // namespace longhand::cpu
