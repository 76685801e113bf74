#include "core/contract/loss.h"

#include <vector>

#include "core/cpu/chunks.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/loss/kernels.h"

namespace longhand::cpu {
namespace {

const float* data_or_null(const Tensor& x) { return x ? x.data<float>() : nullptr; }

void require_targets(std::string_view op, const Tensor& targets, std::int64_t classes) {
  const auto* t = targets.data<std::int32_t>();
  for (std::int64_t i = 0; i < targets.size(); ++i) {
    LONGHAND_CHECK(t[i] < classes, op, ": targets: expected classes below ", classes, ", got ",
                   t[i], " at index ", i);
  }
}

/// Computes the LossSums of `count` predictions, in chunks of `each` predictions. The sums of the
/// chunks are added in order.
template <class Kernel>
LossSums sum_over_chunks(ThreadPool& threads, std::int64_t count, std::int64_t each,
                         Kernel&& kernel) {
  std::vector<LossSums> chunks(static_cast<std::size_t>((count + each - 1) / each));
  parallel_for(threads, count, each, [&](std::int64_t begin, std::int64_t end) {
    chunks[static_cast<std::size_t>(begin / each)] = kernel(begin, end - begin);
  });
  LossSums total;
  for (const LossSums& s : chunks) {
    total.weight += s.weight;
    total.loss += s.loss;
    total.hits += s.hits;
  }
  return total;
}

/// Returns sum / total, or 0 if the total weight is 0.
double mean(double sum, double total) { return total == 0 ? 0 : sum / total; }

void put(const Tensor& y, double value) { *y.data<float>() = static_cast<float>(value); }

double gradient_factor(const Tensor& dloss, const Tensor& total) {
  return mean(*dloss.data<float>(), *total.data<float>());
}

}  // namespace

void run(CpuBackend& backend, const CrossEntropy& op) {
  const std::int64_t classes = op.logits.columns() / op.groups, count = op.targets.size();
  require_targets(CrossEntropy::name, op.targets, classes);
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<LossKernels<T>>(backend.isa());
    const T* logits = op.logits.data<T>();
    const auto* targets = op.targets.data<std::int32_t>();
    const float* weights = data_or_null(op.weights);
    float* log_sum = op.log_sum.data<float>();
    const LossSums sums = sum_over_chunks(
        backend.threads(), count, rows_per_chunk(classes), [&](std::int64_t first, std::int64_t n) {
          return k.cross_entropy(logits + first * classes, targets + first,
                                 weights ? weights + first : nullptr, log_sum + first, n, classes);
        });
    put(op.total, sums.weight);
    put(op.loss, mean(sums.loss, sums.weight));
    if (op.hits) put(op.hits, mean(sums.hits, sums.weight));
  });
}

void run(CpuBackend& backend, const CrossEntropyBackward& op) {
  if (!op.dlogits) return;
  const std::int64_t classes = op.logits.columns() / op.groups, count = op.targets.size();
  require_targets(CrossEntropyBackward::name, op.targets, classes);
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<LossKernels<T>>(backend.isa());
    const T* logits = op.logits.data<T>();
    const auto* targets = op.targets.data<std::int32_t>();
    const float *weights = data_or_null(op.weights), *log_sum = op.log_sum.data<float>();
    T* dlogits = op.dlogits.tensor.data<T>();
    Store how = store_to(op.dlogits, classes);
    if (op.dlogits.tensor.same_memory(op.logits)) how.stream = false;
    const double factor = gradient_factor(op.dloss, op.total);
    parallel_for(backend.threads(), count, rows_per_chunk(classes),
                 [&](std::int64_t begin, std::int64_t end) {
                   k.cross_entropy_backward(logits + begin * classes, targets + begin,
                                            weights ? weights + begin : nullptr, log_sum + begin,
                                            factor, dlogits + begin * classes, how, end - begin,
                                            classes);
                 });
  });
}

void run(CpuBackend& backend, const BinaryCrossEntropy& op) {
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<LossKernels<T>>(backend.isa());
    const T* logits = op.logits.data<T>();
    const float *targets = op.targets.data<float>(), *weights = data_or_null(op.weights);
    const LossSums sums = sum_over_chunks(
        backend.threads(), op.logits.size(), grain, [&](std::int64_t first, std::int64_t n) {
          return k.binary(logits + first, targets + first, weights ? weights + first : nullptr, n);
        });
    put(op.total, sums.weight);
    put(op.loss, mean(sums.loss, sums.weight));
  });
}

void run(CpuBackend& backend, const BinaryCrossEntropyBackward& op) {
  if (!op.dlogits) return;
  visit_activation(op.logits.dtype(), [&]<class T>(T) {
    const auto& k = kernels_for<LossKernels<T>>(backend.isa());
    const T* logits = op.logits.data<T>();
    const float *targets = op.targets.data<float>(), *weights = data_or_null(op.weights);
    T* dlogits = op.dlogits.tensor.data<T>();
    const Store how = store_to(op.dlogits);
    const double factor = gradient_factor(op.dloss, op.total);
    parallel_for(
        backend.threads(), op.logits.size(), grain, [&](std::int64_t begin, std::int64_t end) {
          k.binary_backward(logits + begin, targets + begin, weights ? weights + begin : nullptr,
                            factor, dlogits + begin, how, end - begin);
        });
  });
}

}  // namespace longhand::cpu
