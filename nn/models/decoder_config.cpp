#include "nn/models/decoder_config.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::nn {

std::optional<std::int64_t> most_tokens(const DecoderConfig& config) {
  std::optional<std::int64_t> least;
  for (const MixerList& list : config.mixers) {
    for (const AnyMixer& mixer : list) {
      const auto most = mixer->most_tokens();
      if (most && (!least || *most < *least)) least = most;
    }
  }
  return least;
}

std::vector<std::string_view> projections(const DecoderConfig& config) {
  std::vector<std::string_view> names;
  for (const MixerList& list : config.mixers) {
    for (const AnyMixer& mixer : list) {
      for (const Projected& part : mixer->projected()) {
        if (std::ranges::count(names, part.name) == 0) names.push_back(part.name);
      }
    }
  }
  names.push_back("output");
  if (config.gated) names.push_back("gate");
  names.insert(names.end(), {"up", "down"});
  return names;
}

bool wants_reference(const DecoderConfig& config) {
  return std::ranges::any_of(config.mixers, [](const MixerList& list) {
    return std::ranges::any_of(list, [](const AnyMixer& m) { return m->wants_reference(); });
  });
}

void check(const DecoderConfig& c) {
  LONGHAND_CHECK(
      c.vocabulary >= 1 && c.width >= 1 && c.inner >= 1 && c.layers >= 0 && c.longest >= 1,
      "model: expected vocabulary, width, inner and longest of at least 1 and layers of at "
      "least 0, got vocabulary ",
      c.vocabulary, ", width ", c.width, ", inner ", c.inner, ", longest ", c.longest, ", layers ",
      c.layers);
  const auto entries = static_cast<std::int64_t>(c.mixers.size());
  LONGHAND_CHECK(entries == 1 || entries == c.layers,
                 "heads: expected one entry for all layers or one for each of the ", c.layers,
                 " layers, got ", entries, " entries");
  for (const MixerList& list : c.mixers) {
    LONGHAND_CHECK(!list.empty(), "heads: expected at least one group of heads, got none");
    for (const AnyMixer& mixer : list) mixer->check();
  }
  LONGHAND_CHECK(!c.given_positions || c.positions != Positions::none,
                 "positions: expected rotary, learned or sinusoidal, because the input contains "
                 "position ids, got \"none\"");
  LONGHAND_CHECK(
      !c.given_positions || !most_tokens(c),
      "heads: expected heads without a length limit, because the input contains position ids, got ",
      text_of(c.mixers));
  LONGHAND_CHECK(c.dropout >= 0 && c.dropout < 1, "dropout: expected 0 <= rate < 1, got ",
                 c.dropout);
  LONGHAND_CHECK(!c.norms_after || c.order == Order::sequential,
                 "norms_after: expected blocks in sequential order, got parallel ones");
  LONGHAND_CHECK(
      !c.tied ||
          (c.outputs.size() <= 1 && (c.outputs.empty() || c.outputs.front() == c.vocabulary)),
      "tied: expected one output layer with ", c.vocabulary,
      " classes, the size of the vocabulary, got ", c.outputs.size(),
      " output layer(s), the first with ", c.outputs.empty() ? 0 : c.outputs.front(), " classes");
  LONGHAND_CHECK(
      !c.tied || !c.output_bias,
      "output bias: expected an output layer that is not tied to the embedding, got a tied one");
  if (c.lora.rank == 0) return;
  const std::vector<std::string_view> there = projections(c);
  for (const std::string& target : c.lora.targets) {
    LONGHAND_CHECK(std::ranges::count(there, target) > 0,
                   "lora targets: expected a projection of this model (", listed(there), "), got ",
                   target);
  }
}

}  // namespace longhand::nn
