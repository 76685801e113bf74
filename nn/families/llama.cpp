#include "core/error.h"
#include "nn/models/llama_form.h"

/// Llama. Linear layers have biases only if config.json enables them.
namespace longhand::nn {
namespace {

DecoderConfig config_from(const Fields& fields) {
  DecoderConfig config = llama_config(fields);
  config.projection_bias = config.mixing_bias = fields.flag("attention_bias", false);
  config.feed_forward_bias = fields.flag("mlp_bias", false);
  return config;
}

bool claims(const DecoderConfig& config) {
  return has_llama_blocks(config) && config.norm == NormKind::rms && !config.norms_after &&
         config.projection_bias == config.mixing_bias;
}

Json json_of(const DecoderConfig& config) {
  Json json = llama_json(config, "llama");
  add_rope(json, config, "llama");
  Json windows;
  LONGHAND_CHECK(add_windows(windows, config, "llama") == 0,
                 "llama: expected heads that see all keys, got heads with windows");
  json["architectures"] = {"LlamaForCausalLM"};
  json["model_type"] = "llama";
  json["attention_bias"] = config.projection_bias;
  json["mlp_bias"] = config.feed_forward_bias;
  return json;
}

}  // namespace

extern const Family llama_family;
constinit const Family llama_family{"llama", config_from, claims, json_of, llama_tensors};

}  // namespace longhand::nn
