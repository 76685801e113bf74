#include "apps/run/repair.h"

#include <algorithm>

#include "nn/mixers/biased.h"

namespace longhand::app {
namespace {

constexpr std::array<std::string_view, 5> names{"columns", "rope-off", "bias-matrix", "bias-heads",
                                                "reinforce"};

/// Maximum number of tokens of a sample in any distribution.
std::int64_t longest_sample(const Config& config) {
  std::int64_t longest = 1;
  for (const tasks::Distribution& d : config.distributions()) {
    longest = std::max(longest, config.task(d.name)->longest());
  }
  return longest;
}

/// Adds a trainable bias to all softmax heads, which become biased heads.
void add_biases(Config& config, nn::ScoreBias bias) {
  nn::DecoderConfig model = config.model(*config.task());
  bool any = false;
  for (nn::MixerList& mixers : model.mixers) {
    for (nn::AnyMixer& mixer : mixers) {
      const auto* const plain = dynamic_cast<const nn::SoftmaxHeads*>(&*mixer);
      if (!plain) continue;
      nn::BiasedHeads biased(*plain);
      biased.bias = bias;
      if (bias == nn::ScoreBias::matrix) biased.longest = longest_sample(config);
      mixer = biased;
      any = true;
    }
  }
  LONGHAND_CHECK(any, "repair: expected a run with softmax heads, got ", nn::text_of(model.mixers));
  config.set_model(model);
}

}  // namespace

std::string_view name_of(Repair method) { return names[static_cast<std::size_t>(method)]; }

std::optional<Repair> repair_from_name(std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Repair>(found - names.begin());
}

std::string repair_names() { return nn::listed(names); }

Config repaired(const Config& run, Repair method, std::string_view task) {
  Config config = Config::from_run(run, task);
  // The user's own files may have no distribution with the name "ood".
  const std::vector<tasks::Distribution> all = config.distributions();
  const bool has_ood = std::ranges::find(all, "ood", &tasks::Distribution::name) != all.end();
  if (method != Repair::rope_off) {
    config.set("training.train_on",
               has_ood || config.kind().name != "files" ? "ood" : all.back().name);
  }
  switch (method) {
    case Repair::columns:
      config.set("training.columns", "last");
      break;
    case Repair::rope_off:
      LONGHAND_CHECK(run.model_settings().decoder.positions == nn::Positions::rotary,
                     "repair: expected a run with --positions rotary, got --positions ",
                     run.text("model.positions"));
      config.set("model.positions", "none");
      config.set("training.steps", "0");
      break;
    case Repair::bias_matrix:
      add_biases(config, nn::ScoreBias::matrix);
      break;
    case Repair::bias_heads:
      add_biases(config, nn::ScoreBias::heads);
      break;
    case Repair::reinforce:
      fail("repair: the method reinforce has no settings");
  }
  return config;
}

}  // namespace longhand::app
