#include "core/error.h"
#include "nn/models/llama_form.h"

/// Qwen 2 and 2.5: Llama with biases for queries, keys and values, and sliding-window attention in
/// some layers.
namespace longhand::nn {
namespace {

DecoderConfig config_from(const Fields& fields) {
  DecoderConfig config = llama_config(fields);
  config.projection_bias = true;
  const std::vector<std::int64_t> windows = windows_of(fields, config.layers);
  const SoftmaxHeads heads = heads_of(config, 0);
  config.mixers.clear();
  for (const std::int64_t window : windows) {
    SoftmaxHeads layer = heads;
    layer.window = window;
    config.mixers.push_back({layer.clone()});
  }
  return config;
}

bool claims(const DecoderConfig& config) {
  return has_llama_blocks(config) && config.norm == NormKind::rms && !config.norms_after &&
         config.projection_bias && !config.mixing_bias;
}

Json json_of(const DecoderConfig& config) {
  Json json = llama_json(config, "qwen2");
  add_rope(json, config, "qwen2");
  LONGHAND_CHECK(!config.feed_forward_bias,
                 "qwen2: expected a feed forward without biases, got one with biases");
  json["architectures"] = {"Qwen2ForCausalLM"};
  json["model_type"] = "qwen2";
  json["use_sliding_window"] = add_windows(json, config, "qwen2") != 0;
  return json;
}

}  // namespace

extern const Family qwen2_family;
constinit const Family qwen2_family{"qwen2", config_from, claims, json_of, llama_tensors};

}  // namespace longhand::nn
