#pragma once

#include <vector>

#include "nn/models/decoder.h"

namespace longhand::app {

/// Calls visit(first head, mixer, view) for every mixer of a layer. `first head` is the index of
/// the mixer's first head among all heads of the layer, in the order of the layer's list.
template <class F>
void for_each_mixer(const nn::Decoder& model, std::int64_t layer,
                    const std::vector<nn::MixerView>& views, F visit) {
  std::int64_t first = 0;
  const nn::MixerList& mixers = model.block(layer).mixing.mixers();
  for (std::size_t i = 0; i < mixers.size(); ++i) {
    visit(first, *mixers[i], views[i]);
    first += mixers[i]->heads;
  }
}

/// Calls visit(layer, first head, mixer, view) for every mixer of all layers. `first head` is the
/// index of the mixer's first head among all heads of its layer.
template <class F>
void for_each_mixer(const nn::Decoder& model, const std::vector<std::vector<nn::MixerView>>& views,
                    F visit) {
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    for_each_mixer(model, layer, views[static_cast<std::size_t>(layer)],
                   [&](std::int64_t first, const nn::Mixer& mixer, const nn::MixerView& view) {
                     visit(layer, first, mixer, view);
                   });
  }
}

}  // namespace longhand::app
