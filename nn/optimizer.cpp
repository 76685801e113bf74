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
  norm_.largest = options.clip;
  norm_.norm = Tensor(backend, {1}, parameters.type());
  norm_.factor = Tensor(backend, {1}, parameters.type());
}

double AdamOptimizer::measure() {
  next_ = Adam{.parameters = {},
               .gradients = {},
               .m = {},
               .v = {},
               .decay = {},
               .beta1 = options_.beta1,
               .beta2 = options_.beta2,
               .epsilon = options_.epsilon,
               .decoupled = options_.decoupled,
               .factor = norm_.factor};
  for (const Entry& entry : entries_) {
    Tensor gradient = entry.parameter.var().grad();
    if (!gradient) continue;
    next_.parameters.push_back(entry.parameter.value());
    next_.gradients.push_back(std::move(gradient));
    next_.m.push_back(entry.m);
    next_.v.push_back(entry.v);
    next_.decay.push_back(entry.decay);
  }
  LONGHAND_CHECK(!next_.parameters.empty(), "optimizer: no parameter has a gradient");
  norm_.tensors = next_.gradients;
  norm_.norm.backend()(norm_);
  norm_.tensors.clear();
  return norm_.norm.item();
}

void AdamOptimizer::apply(double rate, std::int64_t step) {
  LONGHAND_CHECK(!next_.parameters.empty(), "optimizer: apply comes after measure");
  next_.rate = rate;
  next_.step = step;
  norm_.norm.backend()(next_);
  next_ = {};
  for (const Entry& entry : entries_) entry.parameter.var().clear_grad();
}

std::vector<AdamOptimizer::State> AdamOptimizer::state() const {
  std::vector<State> all;
  for (const Entry& entry : entries_) {
    all.push_back({entry.parameter.name() + ".m", entry.m});
    all.push_back({entry.parameter.name() + ".v", entry.v});
  }
  return all;
}

}  // namespace longhand::nn
