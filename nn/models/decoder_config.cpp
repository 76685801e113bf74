#include "nn/models/decoder_config.h"

#include "core/error.h"

namespace longhand::nn {

void check(const DecoderConfig& c) {
  LONGHAND_CHECK(
      c.vocabulary >= 1 && c.width >= 1 && c.inner >= 1 && c.layers >= 0 && c.longest >= 1,
      "model: expected a vocabulary, widths and positions, got vocabulary ", c.vocabulary,
      ", width ", c.width, ", inner ", c.inner, ", layers ", c.layers, ", longest ", c.longest);
  const auto entries = static_cast<std::int64_t>(c.mixers.size());
  LONGHAND_CHECK(entries == 1 || entries == c.layers,
                 "heads: expected one entry for all layers or one for each of ", c.layers, ", got ",
                 entries);
  for (const MixerList& list : c.mixers) {
    LONGHAND_CHECK(!list.empty(), "heads: expected at least one group of heads, got none");
    for (const AnyMixer& mixer : list) mixer->check();
  }
  LONGHAND_CHECK(!c.norms_after || c.order == Order::sequential,
                 "norms after: expected blocks in sequential order, got parallel ones");
  LONGHAND_CHECK(!c.tied || (c.outputs.size() <= 1 &&
                             (c.outputs.empty() || c.outputs.front() == c.vocabulary)),
                 "tied: expected one output layer over the vocabulary of ", c.vocabulary, ", got ",
                 c.outputs.size(), c.outputs.size() == 1 ? " over " : " layers, the first over ",
                 c.outputs.empty() ? 0 : c.outputs.front());
}

}  // namespace longhand::nn
