#include "apps/run/config_mixers.h"
#include "core/error.h"

/// Converts between a configuration and a model's description (nn::DecoderConfig).
namespace longhand::app {
namespace {

/// The activation functions for feed-forward layers.
constexpr std::string_view activations[] = {"gelu", "gelu_tanh", "relu", "silu"};

}  // namespace

nn::MixerOptions Config::mixer_options() const {
  nn::MixerOptions options;
  for (const nn::MixerOption& option : nn::all_mixer_options()) {
    options[option.name] = text("model." + option.name);
  }
  return options;
}

std::vector<nn::MixerList> mixers_of(const Config& config) {
  return nn::parse_layers(config.text("model.heads"), config.integer("model.width", 1, 1 << 16),
                          config.mixer_options());
}

bool same_mixers(const Config& a, const Config& b) {
  return nn::text_of(mixers_of(a)) == nn::text_of(mixers_of(b));
}

nn::DecoderConfig Config::model(const tasks::Task& task) const {
  const std::int64_t width = integer("model.width", 1, 1 << 16);
  const std::int64_t inner = integer("model.inner", 0, 1 << 18);
  const std::string_view f = activations[choice("model.activation", activations)];
  nn::check_options(mixer_options());
  nn::DecoderConfig model{.vocabulary = task.vocabulary().size(),
                          .width = width,
                          .layers = integer("model.layers", 0, 1000),
                          .embedding_scale = number("model.embedding_scale", 1e-6, 1e6),
                          .norm = named<nn::NormKind>("model.norm"),
                          .epsilon = number("model.norm_epsilon", 0, 1),
                          .norms_after = flag("model.norms_after"),
                          .order = named<nn::Order>("model.order"),
                          .mixers = mixers_of(*this),
                          .projection_bias = flag("model.attention_bias"),
                          .mixing_bias = flag("model.attention_bias") && flag("model.out_bias"),
                          .inner = inner ? inner : 3 * width,
                          .activation = *activation_from_name(f),
                          .gated = flag("model.gated"),
                          .feed_forward_bias = flag("model.feed_forward_bias"),
                          .positions = named<nn::Positions>("model.positions"),
                          .given_positions = position_ids() != tasks::PositionIds::places,
                          .sinusoid_base = number("model.rope_base", 1, 1e12),
                          .longest = longest_for(task),
                          .tied = flag("model.tied"),
                          .output_bias = flag("model.output_bias"),
                          .start = named<nn::Start>("model.start"),
                          .deviation = number("model.deviation", 0, 100),
                          .lora = {.rank = integer("model.lora", 0, 1 << 12),
                                   .alpha = number("model.lora_alpha", 0, 1e6),
                                   .targets = nn::parse_lora_targets(text("model.lora_targets"))}};
  LONGHAND_CHECK(text("model.learned_gamma") == "no" || nn::has_kind(model.mixers, "chacal"),
                 "learned gamma: expected ChaCAL heads, got ", nn::text_of(model.mixers));
  LONGHAND_CHECK(
      position_ids() != tasks::PositionIds::abacus || model.positions == nn::Positions::learned,
      "position ids: expected learned positions with abacus (--positions learned), got ",
      text("model.positions"));
  const tasks::Outputs outputs = task.outputs();
  model.outputs.assign(static_cast<std::size_t>(task.heads()), outputs.groups * outputs.classes);
  nn::check(model);
  return model;
}

void Config::set_model(const nn::DecoderConfig& model) {
  const auto name = [](auto value) {
    return std::string(nn::names_of<decltype(value)>[static_cast<std::size_t>(value)]);
  };
  const auto flag = [](bool value) { return std::string(value ? "1" : "0"); };
  set("model.width", std::to_string(model.width));
  set("model.layers", std::to_string(model.layers));
  set("model.embedding_scale", nn::shortest(model.embedding_scale));
  set("model.inner", std::to_string(model.inner));
  set("model.norm", name(model.norm));
  set("model.norm_epsilon", nn::shortest(model.epsilon));
  set("model.norms_after", flag(model.norms_after));
  set("model.order", name(model.order));
  set("model.activation", std::string(name_of(model.activation)));
  set("model.gated", flag(model.gated));
  set("model.feed_forward_bias", flag(model.feed_forward_bias));
  set("model.attention_bias", flag(model.projection_bias));
  set("model.out_bias", flag(model.mixing_bias || !model.projection_bias));
  set("model.output_bias", flag(model.output_bias));
  set("model.positions", name(model.positions));
  set("model.longest", std::to_string(model.longest));
  set("model.tied", flag(model.tied));
  set("model.start", name(model.start));
  set("model.deviation", nn::shortest(model.deviation));
  // The options of the first layer's mixers are written as defaults. Mixers with other options
  // state them in the list of heads.
  const nn::MixerOptions options = nn::options_of(model.mixers.front());
  for (const auto& [option, value] : options) set("model." + option, value);
  set("model.heads", nn::text_of(model.mixers, mixer_options()));
  if (model.positions == nn::Positions::sinusoidal) {
    set("model.rope_base", nn::shortest(model.sinusoid_base));
  }
}

}  // namespace longhand::app
