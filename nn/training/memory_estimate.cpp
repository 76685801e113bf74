#include "nn/training/memory_estimate.h"

#include <algorithm>
#include <utility>

#include "autograd/tape.h"
#include "core/accounting_backend.h"

namespace longhand::nn {

namespace {

/// The batch and itself again.
Batch twice(const Batch& batch) {
  Batch all = batch;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(all.tokens, batch.tokens);
  append(all.lengths, batch.lengths);
  append(all.positions, batch.positions);
  append(all.targets, batch.targets);
  append(all.weights, batch.weights);
  for (auto [to, from] :
       {std::pair{&all.features, &batch.features}, std::pair{&all.values, &batch.values}}) {
    append(to->values, from->values);
    to->shape = from->shape.with_front(2 * from->shape.front());
  }
  return all;
}

/// The most that is live during a step; what gradients there are adds to `gradients`.
double peak_of(Model& model, AdamOptimizer& optimizer, const Batch& batch, double& gradients) {
  Backend& backend = model.parameters().backend();
  const DType type = model.parameters().type();
  backend.memory().reset_peak();
  const PlacedBatch placed = place(backend, batch, type);
  model.prepare(placed.input.longest);
  Tape tape;
  Loss loss;
  {
    const Recording recording(tape);
    loss = model.loss(placed);
  }
  tape.backward(loss.value, Tensor::zeros(backend, {1}, type));
  for (const Parameter& p : model.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) {
      gradients += static_cast<double>(CachingAllocator::class_size(gradient.bytes()));
    }
  }
  optimizer.prepare(0, 1);
  optimizer.step(loss.value.value());
  return static_cast<double>(backend.memory().use().peak);
}

}  // namespace

MemoryEstimate estimate_training(const std::function<std::unique_ptr<Model>(Backend&)>& make_model,
                                 const BackendOptions& options, const Batch& batch, double times,
                                 const AdamOptions& adam) {
  const auto backend = make_accounting_backend(options);
  const auto live = [&] { return static_cast<double>(backend->memory().use().live); };
  const auto model = make_model(*backend);
  MemoryEstimate need{.parameters = live()};
  AdamOptimizer optimizer(model->parameters(), adam);
  const double lasting = live();
  need.moments = lasting - need.parameters;

  double peak = peak_of(*model, optimizer, batch, need.gradients);
  if (times > 1) {
    double again = 0;
    peak += (times - 1) * (peak_of(*model, optimizer, twice(batch), again) - peak);
  }
  need.activations = std::max(0.0, peak - lasting - need.gradients);
  return need;
}

}  // namespace longhand::nn
