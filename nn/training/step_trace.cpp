#include "nn/training/step_trace.h"

#include <utility>

#include "core/contract/elementwise.h"
#include "core/error.h"

namespace longhand::nn {

std::string batch_prefix(std::int64_t place) { return text("batches.", place, '.'); }

std::vector<NamedTensor> arrays_of(const Batch& batch, Backend& host, const std::string& prefix) {
  std::vector<NamedTensor> arrays;
  const auto integers = [&](const std::string& name, const std::vector<std::int32_t>& values,
                            const Shape& shape) {
    if (!values.empty()) arrays.push_back({prefix + name, Tensor::from(host, shape, values)});
  };
  const auto floats = [&](const std::string& name, const std::vector<double>& values,
                          const Shape& shape, DType type) {
    if (values.empty()) return;
    arrays.push_back({prefix + name, Tensor::from(host, shape, type, values)});
  };
  integers("tokens", batch.tokens, {std::ssize(batch.tokens)});
  integers("lengths", batch.lengths, {std::ssize(batch.lengths)});
  integers("positions", batch.positions, {std::ssize(batch.positions)});
  floats("features", batch.features.values, batch.features.shape, DType::f64);
  const Shape choices = {std::ssize(batch.targets) / batch.groups, batch.groups};
  integers("targets", batch.targets, choices);
  floats("values", batch.values.values, batch.values.shape, DType::f64);
  floats("weights", {batch.weights.begin(), batch.weights.end()}, choices, DType::f32);
  for (const auto& [name, input] : batch.named_features) {
    floats("features." + name, input.values, input.shape, DType::f64);
  }
  for (const auto& [name, input] : batch.named_tokens) {
    integers("tokens." + name, input.tokens, {std::ssize(input.tokens)});
    integers("lengths." + name, input.lengths, {std::ssize(input.lengths)});
  }
  integers("head", {static_cast<std::int32_t>(batch.head)}, {1});
  return arrays;
}

StepTracer::StepTracer(Model& model, const Optimizer& optimizer, const Step& step)
    : model_(model), optimizer_(optimizer), shares_(step.shares), host_(make_reference_backend()) {
  trace_.step = step.report.step;
  put("step", {static_cast<double>(step.report.step)});
  for (const auto& [name, values] : optimizer.numbers(step.report.rate, step.report.step)) {
    put(name, values);
  }
  for (const Optimizer::Learning& one : optimizer.learning()) {
    put("rates." + one.parameter.name(), {one.rate * step.report.rate});
    put("decays." + one.parameter.name(), {one.decay});
    std::vector<std::int32_t> rows;
    for (const Rows& some : one.parameter.learning_rows()) {
      for (std::int64_t i = 0; i < some.count; ++i) {
        rows.push_back(static_cast<std::int32_t>(some.first + i));
      }
    }
    if (rows.empty()) continue;
    trace_.tensors.push_back(
        {"rows." + one.parameter.name(), Tensor::from(*host_, {std::ssize(rows)}, rows)});
  }
  for (std::size_t i = 0; i < step.batches.size(); ++i) {
    const std::string prefix = batch_prefix(step.places[i]);
    for (NamedTensor& array : arrays_of(step.batches[i], *host_, prefix)) {
      trace_.tensors.push_back(std::move(array));
    }
    put(prefix + "share", {step.shares[i]});
  }
  for (const Parameter& p : model.parameters().all()) {
    keep("parameters.before." + p.name(), p.value());
  }
  keep_state("before");
  watch_ = std::exchange(model.watch, [this](const std::string& name, const Tensor& x) {
    keep(batch_ + "activations." + name, x);
    if (watch_) watch_(name, x);
  });
}

StepTracer::~StepTracer() { model_.watch = watch_; }

/// Stores a copy of x, because the memory of x may be reused.
void StepTracer::keep(const std::string& name, const Tensor& x) {
  const Tensor copy = empty_like(x);
  x.backend()(Copy{.x = x, .y = copy});
  trace_.tensors.push_back({name, copy});
}

void StepTracer::put(const std::string& name, const std::vector<double>& values) {
  trace_.tensors.push_back({name, Tensor::from(*host_, {std::ssize(values)}, DType::f64, values)});
}

void StepTracer::keep_state(const std::string& when) {
  for (const Optimizer::State& state : optimizer_.state()) {
    keep(text("optimizer.", when, '.', state.name), state.tensor);
  }
}

void StepTracer::begin_batch(std::int64_t place) { batch_ = batch_prefix(place); }

void StepTracer::gradients_are_there() {
  for (const Parameter& p : model_.parameters().all()) {
    if (const Tensor gradient = p.var().grad()) keep("gradients." + p.name(), gradient);
  }
}

StepTrace StepTracer::trace(const PlacedStep& placed) {
  for (const Parameter& p : model_.parameters().all()) {
    keep("parameters.after." + p.name(), p.value());
  }
  keep_state("after");
  keep("norm", optimizer_.norm());
  keep("factor", optimizer_.factor());
  const std::vector<double> losses = placed.losses().to_doubles();
  double loss = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    keep(batch_prefix(placed.places[i]) + "loss",
         placed.numbers.slice(static_cast<std::int64_t>(i), 1));
    loss += shares_[i] * losses[i];
  }
  put("loss", {loss});
  return std::move(trace_);
}

}  // namespace longhand::nn
