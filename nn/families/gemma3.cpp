#include <cmath>

#include "core/error.h"
#include "core/quote.h"
#include "nn/models/llama_form.h"

/// The text model of Gemma 3. The gain of each norm is 1 + the stored weight. Norms are applied
/// before and after both mixing and feed forward, and to queries and keys. Embeddings are
/// multiplied by sqrt(width). Every sixth layer has full attention. All other layers have
/// sliding-window attention, and their rotary positions have another base.
namespace longhand::nn {
namespace {

constexpr std::string_view global = "full_attention", local = "sliding_attention";

/// Returns the rotary positions of all layers of one kind: layers with full or with sliding-window
/// attention. Version 5 of the Python package transformers writes one object per kind to
/// rope_parameters in config.json. Version 4 writes only one base per kind.
RopeOptions rope_of(const Fields& fields, std::string_view kind) {
  const bool all = kind == global;
  RopeOptions rope;
  rope.base = all ? fields.number("rope_theta", 1e6) : fields.number("rope_local_base_freq", 1e4);
  if (const Json* const parameters = fields.find("rope_parameters")) {
    const Json* const own = parameters->is_object() ? parameters->find(kind) : nullptr;
    LONGHAND_CHECK(own, fields.source(), ": rope_parameters: expected an object named ", kind,
                   ", got none");
    return rope_from(own, rope, fields.source());
  }
  return rope_from(all ? fields.find("rope_scaling") : nullptr, rope, fields.source());
}

bool is_global(const Fields& fields, const std::vector<std::int64_t>& windows, std::int64_t layer) {
  if (fields.find("layer_types")) return windows[static_cast<std::size_t>(layer)] == 0;
  const std::int64_t other = fields.size("_sliding_window_pattern", 6);
  return (layer + 1) % fields.size("sliding_window_pattern", other) == 0;
}

DecoderConfig config_from(const Fields& fields) {
  for (const char* const cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    LONGHAND_CHECK(!fields.find(cap), fields.source(), ": ", cap,
                   ": expected null or no such key, got ", quote(fields.find(cap)->dump()));
  }
  DecoderConfig config = llama_config(fields);
  config.projection_bias = config.mixing_bias = fields.flag("attention_bias", false);
  config.activation = fields.activation("hidden_activation", "gelu_pytorch_tanh");
  config.norm = NormKind::rms_plus_one;
  config.norms_after = true;
  config.tied = fields.flag("tie_word_embeddings", true);
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  SoftmaxHeads heads = heads_of(config, 0);
  heads.width = fields.size("head_dim", 256);
  LONGHAND_CHECK(heads.width % 2 == 0, fields.source(),
                 ": head_dim: expected an even number, because entries are rotated in pairs, got ",
                 heads.width);
  heads.head_norm = HeadNorm::rms_plus_one;
  heads.scores.scale =
      1 / std::sqrt(static_cast<double>(fields.size("query_pre_attn_scalar", 256)));
  const std::vector<std::int64_t> windows = windows_of(fields, config.layers);
  config.mixers.clear();
  for (std::int64_t i = 0; i < config.layers; ++i) {
    SoftmaxHeads layer = heads;
    const bool all = is_global(fields, windows, i);
    layer.window = all ? 0 : fields.size("sliding_window", 4096);
    layer.rope = rope_of(fields, all ? global : local);
    config.mixers.push_back({layer.clone()});
  }
  return config;
}

bool claims(const DecoderConfig& config) {
  return has_llama_blocks(config) && config.norm == NormKind::rms_plus_one && config.norms_after;
}

/// Returns the integer n for which 1 / sqrt(n) is `scale`, the factor of the attention scores.
/// config.json can store only n. If no integer fits, throws an Error.
std::int64_t divisor_of(double scale) {
  const double divisor = 1 / (scale * scale), whole = std::round(divisor);
  LONGHAND_CHECK(whole >= 1 && whole <= 1e9 && std::abs(divisor - whole) <= 1e-9 * whole,
                 "gemma3_text: expected a score scale of 1/sqrt(n) with an integer n, got ", scale);
  return static_cast<std::int64_t>(whole);
}

Json json_of(const DecoderConfig& config) {
  Json json = llama_json(config, "gemma3_text");
  const SoftmaxHeads& first = heads_of(config, 0);
  LONGHAND_CHECK(
      config.embedding_scale == std::sqrt(static_cast<float>(config.width)) &&
          first.norm_of_heads() == HeadNorm::rms_plus_one && first.scores.scale > 0 &&
          !config.feed_forward_bias && config.projection_bias == config.mixing_bias,
      "gemma3_text: expected embeddings scaled by sqrt(width), RMS norms of queries and keys with "
      "gain 1 + w, a score scale above 0, feed forwards without biases, and attention projections "
      "that all have biases or all have no biases, got another configuration");
  Json::Object ropes;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const SoftmaxHeads& heads = heads_of(config, i);
    const std::string kind(heads.window == 0 ? global : local);
    const Json rope = rope_json(heads.rope);
    bool known = false;
    for (const auto& [other, theirs] : ropes) {
      if (other != kind) continue;
      known = true;
      LONGHAND_CHECK(theirs == rope, "gemma3_text: expected the same rotary positions in all ",
                     kind, " layers, got different ones");
    }
    if (!known) ropes.emplace_back(kind, rope);
    json[heads.window == 0 ? "rope_theta" : "rope_local_base_freq"] = heads.rope.base;
  }
  json["rope_parameters"] = Json(std::move(ropes));
  add_windows(json, config, "gemma3_text");
  json["architectures"] = {"Gemma3ForCausalLM"};
  json["model_type"] = "gemma3_text";
  json["hidden_activation"] = hugging_face_name(config.activation);
  json["attention_bias"] = config.projection_bias;
  json["query_pre_attn_scalar"] = divisor_of(first.scores.scale);
  json["attn_logit_softcapping"] = nullptr;
  json["final_logit_softcapping"] = nullptr;
  return json;
}

}  // namespace

extern const Family gemma3_family;
constinit const Family gemma3_family{"gemma3_text", config_from, claims, json_of, llama_tensors};

}  // namespace longhand::nn
