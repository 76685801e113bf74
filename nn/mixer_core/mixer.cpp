#include "nn/mixer_core/mixer.h"

#include "autograd/attention.h"

namespace longhand::nn {

Tensor MixerView::all_weights() const {
  return scores ? attention_weights(*scores, rule) : weights;
}

Parameter MixerScope::shared(std::string_view name, const Shape& shape, double initial) {
  for (const auto& [known, parameter] : shared_) {
    if (known == name) return parameter;
  }
  shared_.emplace_back(name, scope_.add(name, shape, nn::constant(initial), false));
  return shared_.back().second;
}

Tensor MixerScope::constants(std::span<const double> values) const {
  const Parameters& parameters = scope_.parameters();
  return Tensor::from(parameters.backend(), {std::ssize(values)}, parameters.type(), values);
}

}  // namespace longhand::nn
