#include "nn/mixer_core/mixing.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/error.h"

namespace longhand::nn {

Mixing::Mixing(const Scope& scope, const Settings& settings, const MixerList& mixers, Initial first,
               Initial last)
    : projection(scope / "projection", settings.width, projection_columns(mixers),
                 settings.projection_bias, first),
      out(scope / "out", columns(mixers), settings.width, settings.out_bias, last),
      scope_(scope),
      settings_(settings),
      mixers_(mixers),
      places_(nn::places(mixers)) {}

void Mixing::build() {
  MixerScope layer(*scope_, settings_.width, settings_.rotary, settings_.epsilon);
  for (std::size_t i = 0; i < mixers_.size(); ++i) mixers_[i]->build(layer, places_[i]);
}

Var Mixing::operator()(const Var& x, const Var& residual, const Pass& pass) const {
  Var columns_of_all = projection(x);
  for (const AnyMixer& mixer : mixers_) {
    columns_of_all = mixer->turn(columns_of_all, pass.input, pass.tables);
  }
  const Var projected = columns_of_all;
  if (pass.show) pass.show("projection", projected.value());
  const Tensor y(x.backend(), {projected.value().rows(), columns(mixers_)},
                 projected.value().dtype());
  std::vector<HeadsBackward> backward;
  std::vector<Heads> outputs;  // layout of each mixer's heads in y, without data
  std::vector<Var> learned;
  for (std::size_t i = 0; i < mixers_.size(); ++i) {
    const Mixer& mixer = *mixers_[i];
    MixerPass own{projected, pass.input, pass.tables, y};
    if (pass.cache) {
      own.cache = &pass.cache->mixers[i];
      own.cached = &pass.cache->keys;
    }
    if (pass.views) own.view = &pass.views->emplace_back();
    own.x = &x;
    backward.push_back(mixer.forward(own));
    outputs.push_back({{}, places_[i].output, mixer.heads, mixer.width});
    for (const Var& var : mixer.learned()) learned.push_back(var);
  }
  if (pass.show) pass.show("heads", y);
  // The tape records this operation if one of its listed inputs requires a gradient. It is
  // therefore enough to list one of the mixers' parameters that require a gradient, if there are
  // any.
  const auto wanting = std::ranges::find_if(learned, &Var::wants_grad);
  const Var& input = wanting == learned.end() ? projected : *wanting;
  const Var mixed = record("mixing", {&projected, &input}, y,
                           [backward = std::move(backward), outputs = std::move(outputs),
                            gradient = projected.sink()](const Tensor& dy) {
                             // Together, the mixers write all columns of the projection's gradient,
                             // so it need not be zeroed first.
                             const bool assign = gradient && !gradient.target().add;
                             for (std::size_t i = 0; i < outputs.size(); ++i) {
                               Heads heads = outputs[i];
                               heads.data = dy;
                               if (backward[i]) backward[i](heads, assign);
                             }
                           });
  const Var result = out(mixed, {.residual = residual});
  if (pass.show) pass.show("", result.value());
  return result;
}

void Mixing::prepare(RopeTables& tables, std::int64_t longest) const {
  const Parameter& weight = projection.weight;
  const DType type = weight.blocks() ? DType::f32 : master_type(weight.value().dtype());
  for (const AnyMixer& mixer : mixers_) {
    mixer->prepare(tables, weight.backend(), type, longest);
  }
}

std::vector<MixerCache> Mixing::make_cache(DType type, std::int64_t rows,
                                           std::int64_t sequences) const {
  Backend& backend = projection.weight.backend();
  std::vector<MixerCache> caches;
  for (const AnyMixer& mixer : mixers_) {
    mixer->check_decoding();
    MixerCache cache{.keys_values = Tensor(backend, {rows, mixer->cached_columns()}, type)};
    if (const std::int64_t numbers = mixer->cached_numbers()) {
      cache.numbers = Tensor(backend, {rows, numbers}, master_type(type));
    }
    for (const std::int64_t numbers : mixer->cached_memories()) {
      cache.memories.push_back(Tensor::zeros(backend, {sequences, numbers}, master_type(type)));
    }
    if (mixer->caches_outputs()) cache.outputs = Tensor(backend, {rows, mixer->columns()}, type);
    caches.push_back(std::move(cache));
  }
  return caches;
}

std::vector<LearnedNumber> Mixing::learned_numbers() const {
  std::vector<LearnedNumber> all;
  for (const AnyMixer& mixer : mixers_) {
    for (const LearnedNumber& number : mixer->learned_numbers()) {
      const bool known = std::ranges::any_of(all, [&](const LearnedNumber& other) {
        return other.name == number.name && other.head == number.head;
      });
      if (!known) all.push_back(number);  // a shared number is reported once
    }
  }
  return all;
}

}  // namespace longhand::nn
