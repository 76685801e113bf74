#include "nn/models/work.h"

namespace longhand::nn {
namespace {

/// Total number of entries of the matrices that are applied to every token.
double matrix_entries(const Decoder& model) {
  double entries = 0;
  const auto add = [&](const Linear& linear) {
    if (linear.weight) entries += static_cast<double>(linear.weight.shape().size());
  };
  for (std::int64_t layer = 0; layer < model.config().layers; ++layer) {
    const Decoder::Block& block = model.block(layer);
    for (const Linear* const linear :
         {&block.mixing.projection, &block.mixing.out, &block.feed_forward.up,
          &block.feed_forward.down, &block.gated.gate_up, &block.gated.down}) {
      add(*linear);
    }
  }
  for (std::int64_t head = 0; head < model.outputs(); ++head) add(model.output(head));
  return entries;
}

}  // namespace

StepWork work_of(const Decoder& model, double tokens, double pairs) {
  const DecoderConfig& c = model.config();
  double kept = 0;  // numbers that are stored per token for the backward pass
  double of_pair = 0, of_token = 0;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const MixerList& mixers = c.mixers_of(layer);
    for (const AnyMixer& mixer : mixers) {
      of_pair += mixer->operations_of_pair();
      of_token += mixer->operations_of_token();
    }
    // The backward pass needs these tensors of each layer: the residual stream, two normalized
    // copies of it, the inputs and outputs of the mixers (groups of heads), and two tensors of the
    // feed forward, or three if the feed forward is gated.
    kept += static_cast<double>(3 * c.width + projection_columns(mixers) + columns(mixers) +
                                (c.gated ? 3 : 2) * c.inner);
  }
  return {.operations = (6 * matrix_entries(model) + of_token) * tokens + of_pair * pairs,
          .bytes = 4 * kept * tokens * static_cast<double>(size_of(model.activations())) +
                   8 * static_cast<double>(
                           model.parameters().count() *
                           static_cast<std::int64_t>(size_of(model.parameters().type())))};
}

}  // namespace longhand::nn
