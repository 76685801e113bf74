#include "nn/optimizer.h"

#include "core/error.h"

namespace longhand::nn {

AdamOptimizer::AdamOptimizer(const Parameters& parameters, AdamOptions options)
    : options_(options) {
  Backend& backend = parameters.backend();
  for (const Parameter& parameter : parameters.all()) {
    if (parameter.frozen()) continue;
    const Tensor& w = parameter.value();
    entries_.push_back({parameter, Tensor::zeros(backend, w.shape(), w.dtype()),
                        Tensor::zeros(backend, w.shape(), w.dtype()),
                        parameter.decays() ? options.decay : 0});
  }
  LONGHAND_CHECK(!entries_.empty(), "optimizer: expected a parameter that is not frozen, got none");
  const DType type = parameters.type();
  norm_ = Tensor(backend, {1}, type);
  factor_ = Tensor(backend, {1}, type);
  now_ = Tensor(backend, {3}, type);
  go_on();
}

void AdamOptimizer::prepare(double rate, std::int64_t step) {
  now_.assign(adam_now(rate, step, options_.beta1, options_.beta2));
}

void AdamOptimizer::step(const Tensor& losses) {
  Adam adam{.parameters = {},
            .gradients = {},
            .m = {},
            .v = {},
            .decay = {},
            .now = now_,
            .beta1 = options_.beta1,
            .beta2 = options_.beta2,
            .epsilon = options_.epsilon,
            .decoupled = options_.decoupled,
            .factor = factor_};
  for (const Entry& entry : entries_) {
    Tensor gradient = entry.parameter.var().grad();
    if (!gradient) continue;
    adam.parameters.push_back(entry.parameter.value());
    adam.gradients.push_back(std::move(gradient));
    adam.m.push_back(entry.m);
    adam.v.push_back(entry.v);
    adam.decay.push_back(entry.decay);
  }
  LONGHAND_CHECK(!adam.parameters.empty(), "optimizer: no parameter has a gradient");
  Backend& backend = norm_.backend();
  backend(GlobalNorm{.tensors = adam.gradients,
                     .largest = options_.clip,
                     .norm = norm_,
                     .factor = factor_,
                     .losses = losses});
  backend(adam);
  for (const Entry& entry : entries_) entry.parameter.var().clear_grad();
}

void AdamOptimizer::go_on() { factor_.backend()(Fill{.value = 1, .y = factor_}); }

std::vector<AdamOptimizer::State> AdamOptimizer::state() const {
  std::vector<State> all;
  for (const Entry& entry : entries_) {
    all.push_back({entry.parameter.name() + ".m", entry.m});
    all.push_back({entry.parameter.name() + ".v", entry.v});
  }
  return all;
}

}  // namespace longhand::nn
