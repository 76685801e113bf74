#include <charconv>

#include "apps/run/config_mixers.h"
#include "core/error.h"

/// Converts between a configuration and a model's description (nn::DecoderConfig).
namespace longhand::app {

nn::MixerOptions Config::mixer_options() const {
  nn::MixerOptions options;
  for (const nn::OptionSpec& option : nn::all_mixer_options()) {
    options[option.name] = text("model." + option.name);
  }
  return options;
}

std::vector<nn::MixerList> mixers_of(const Config& config) {
  const ModelSettings settings = config.model_settings();
  return nn::parse_layers(settings.heads, settings.decoder.width, config.mixer_options());
}

bool same_mixers(const Config& a, const Config& b) {
  return nn::text_of(mixers_of(a)) == nn::text_of(mixers_of(b));
}

namespace {

std::optional<double> as_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The list of heads, without the options that the configuration sets for all heads.
std::string heads_of(const Config& config) {
  const ModelSettings settings = config.model_settings();
  return nn::text_of(nn::parse_layers(settings.heads, settings.decoder.width));
}

}  // namespace

bool same_setting(const Config& a, const Config& b, std::string_view key) {
  if (!a.knows(key) || !b.knows(key)) return a.knows(key) == b.knows(key);
  const std::string &one = a.text(key), &other = b.text(key);
  if (one == other) return true;
  const std::optional<double> number = as_number(one);
  if (number && number == as_number(other)) return true;
  if (key == "model.heads") return heads_of(a) == heads_of(b);
  // The value `default` of model.head_norm selects a norm that depends on the kind of heads. So two
  // different values may select the same norm. Comparing the resulting mixers decides.
  return key == "model.head_norm" && same_mixers(a, b);
}

nn::DecoderConfig Config::model(const tasks::Task& task) const {
  const ModelSettings settings = model_settings();
  nn::check_options(mixer_options());
  nn::DecoderConfig model = settings.decoder;
  model.vocabulary = task.vocabulary().size();
  model.mixers = mixers_of(*this);
  model.mixing_bias = model.mixing_bias && model.projection_bias;
  if (model.inner == 0) model.inner = 3 * model.width;
  model.given_positions = settings.position_ids != tasks::PositionIds::places;
  model.sinusoid_base = parsed<nn::RopeOptions>("model").base;
  model.longest = longest_for(task);
  LONGHAND_CHECK(text("model.learned_gamma") == "no" || nn::has_kind(model.mixers, "chacal"),
                 "learned gamma: expected ChaCAL heads, got ", nn::text_of(model.mixers));
  LONGHAND_CHECK(settings.position_ids != tasks::PositionIds::abacus ||
                     model.positions == nn::Positions::learned,
                 "position ids \"abacus\": expected learned positions (--positions learned), got ",
                 text("model.positions"));
  const tasks::Outputs outputs = task.outputs();
  model.outputs.assign(static_cast<std::size_t>(task.heads()), outputs.groups * outputs.classes);
  nn::check(model);
  return model;
}

void Config::set_model(const nn::DecoderConfig& model) {
  ModelSettings settings = model_settings();
  settings.decoder = model;
  settings.decoder.mixing_bias = model.mixing_bias || !model.projection_bias;
  // The options of the first layer's mixers become the settings of all mixers. Where a mixer has
  // other options, the list of heads (model.heads) states them.
  const nn::MixerOptions options = nn::options_of(model.mixers.front());
  for (const auto& [option, value] : options) set("model." + option, value);
  settings.heads = nn::text_of(model.mixers, mixer_options());
  nn::Options declared;
  settings.declare_decoder(declared);
  for (const nn::BoundOption& option : declared.all()) set("model." + option.name, option.text());
  if (model.positions == nn::Positions::sinusoidal) {
    set("model.rope_base", nn::shortest(model.sinusoid_base));
  }
}

}  // namespace longhand::app
