#include "nn/models/llama_form.h"

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {

RopeOptions rope_from(const Json* parameters, RopeOptions rope, std::string_view source) {
  if (parameters) {
    const Fields fields(*parameters, source);
    const std::string kind = fields.word("rope_type", fields.word("type", "default").c_str());
    LONGHAND_CHECK(kind == "default" || kind == "llama3", source,
                   ": rope_type: expected default or llama3, got ", quote(kind));
    rope.base = fields.number("rope_theta", rope.base);
    const double share = fields.number("partial_rotary_factor", 1);
    LONGHAND_CHECK(share == 1, source, ": partial_rotary_factor: expected 1, got ", share);
    if (kind == "llama3") {
      rope.factor = fields.number("factor", 8);
      rope.low = fields.number("low_freq_factor", 1);
      rope.high = fields.number("high_freq_factor", 4);
      rope.original = fields.size("original_max_position_embeddings", 8192);
    }
  }
  LONGHAND_CHECK(rope.base > 0, source, ": rope_theta: expected a number above 0, got ", rope.base);
  LONGHAND_CHECK(rope.factor >= 1 && rope.low > 0 && rope.high > rope.low, source,
                 ": expected factor >= 1 and 0 < low_freq_factor < high_freq_factor, got ",
                 rope.factor, ", ", rope.low, " and ", rope.high);
  return rope;
}

Json rope_json(const RopeOptions& rope) {
  Json json{{"rope_theta", rope.base}, {"rope_type", rope.factor == 1 ? "default" : "llama3"}};
  if (rope.factor != 1) {
    json["factor"] = rope.factor;
    json["low_freq_factor"] = rope.low;
    json["high_freq_factor"] = rope.high;
    json["original_max_position_embeddings"] = rope.original;
  }
  return json;
}

DecoderConfig llama_config(const Fields& fields) {
  LONGHAND_CHECK(!fields.find("quantization_config"), fields.source(),
                 ": quantization_config: expected none, got a quantized model");
  fields.must_be("use_bidirectional_attention", false, false);
  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size");
  config.width = fields.size("hidden_size");
  config.layers = fields.layers("num_hidden_layers");
  config.inner = fields.size("intermediate_size");
  config.norm = NormKind::rms;
  config.epsilon = fields.number("rms_norm_eps", 1e-6);
  config.order = Order::sequential;
  config.gated = true;
  config.activation = fields.activation("hidden_act", "silu");
  config.feed_forward_bias = config.mixing_bias = config.projection_bias = false;
  config.longest = fields.size("max_position_embeddings", 2048);
  config.tied = fields.flag("tie_word_embeddings", false);
  config.deviation = fields.number("initializer_range", 0.02);

  SoftmaxHeads heads;
  heads.heads = fields.size("num_attention_heads");
  heads.key_heads = fields.size("num_key_value_heads", heads.heads);
  LONGHAND_CHECK(heads.heads % heads.key_heads == 0, fields.source(),
                 ": num_key_value_heads: expected a divisor of ", heads.heads,
                 " (num_attention_heads), got ", heads.key_heads);
  if (!fields.find("head_dim")) {
    LONGHAND_CHECK(config.width % heads.heads == 0, fields.source(),
                   ": num_attention_heads: expected a divisor of ", config.width,
                   " (hidden_size), because head_dim is missing, got ", heads.heads);
  }
  heads.width = fields.size("head_dim", std::max<std::int64_t>(1, config.width / heads.heads));
  heads.rope.base = fields.number("rope_theta", heads.rope.base);
  const Json* const parameters = fields.find("rope_parameters");
  heads.rope =
      rope_from(parameters ? parameters : fields.find("rope_scaling"), heads.rope, fields.source());
  LONGHAND_CHECK(heads.width % 2 == 0, fields.source(),
                 ": head_dim: expected an even number, because entries are rotated in pairs, got ",
                 heads.width);
  config.mixers = softmax_layers(heads);
  return config;
}

std::vector<std::int64_t> windows_of(const Fields& fields, std::int64_t layers) {
  std::vector<std::int64_t> windows(static_cast<std::size_t>(layers), 0);
  const Json* const types = fields.find("layer_types");
  const bool sliding = fields.flag("use_sliding_window", false);
  if (types) {
    LONGHAND_CHECK(types->is_array() && static_cast<std::int64_t>(types->size()) == layers,
                   fields.source(), ": layer_types: expected one type for each of ", layers,
                   " layers");
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Json& type = (*types)[i];
      const bool windowed = type == Json("sliding_attention");
      LONGHAND_CHECK(windowed || type == Json("full_attention"), fields.source(),
                     ": layer_types: expected full_attention or sliding_attention, got ",
                     quote(type.dump()));
      if (windowed) windows[i] = fields.size("sliding_window");
    }
  } else if (sliding) {
    const auto first = static_cast<std::size_t>(fields.size("max_window_layers", 28));
    for (std::size_t i = first; i < windows.size(); ++i) {
      windows[i] = fields.size("sliding_window", 4096);
    }
  }
  return windows;
}

bool has_llama_blocks(const DecoderConfig& c) {
  return c.gated && c.order == Order::sequential && c.positions == Positions::rotary;
}

const SoftmaxHeads& heads_of(const DecoderConfig& config, std::int64_t layer) {
  const auto* const heads = dynamic_cast<const SoftmaxHeads*>(&*config.mixers_of(layer).front());
  LONGHAND_CHECK(heads && config.mixers_of(layer).size() == 1,
                 "expected one group of softmax heads in each layer, got ", text_of(config.mixers),
                 "; Hugging Face's format supports no other heads");
  return *heads;
}

Json llama_json(const DecoderConfig& config, std::string_view family) {
  const SoftmaxHeads& first = heads_of(config, 0);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    SoftmaxHeads same = heads_of(config, i);
    const RopeOptions& rope = same.rope;
    LONGHAND_CHECK(!rope.interleaved && rope.share == 1, family,
                   ": expected rotary positions that rotate all entries of a head and pair entry i "
                   "of the first half of a head with entry i of the second half");
    same.window = first.window;
    same.rope = first.rope;
    LONGHAND_CHECK(text_of(MixerList{same.clone()}) == text_of(MixerList{first.clone()}), family,
                   ": expected heads that are equal in all layers except for windows and rotary "
                   "positions, got ",
                   text_of(config.mixers));
  }
  LONGHAND_CHECK(first.scores.temper == Temper::none, family,
                 ": expected heads of kind \"softmax\" without the option \"temper\", got heads "
                 "with this option");
  LONGHAND_CHECK(config.outputs.empty() || config.outputs == std::vector{config.vocabulary}, family,
                 ": expected one output layer with ", config.vocabulary,
                 " classes, the size of the vocabulary, got ", config.outputs.size(),
                 " output layer(s), the first with ", config.outputs.front(), " classes");
  LONGHAND_CHECK(!config.output_bias, family,
                 ": expected an output layer without a bias, got one with a bias");
  return {{"vocab_size", config.vocabulary},
          {"hidden_size", config.width},
          {"num_hidden_layers", config.layers},
          {"intermediate_size", config.inner},
          {"num_attention_heads", first.heads},
          {"num_key_value_heads", first.key_heads},
          {"head_dim", first.width},
          {"max_position_embeddings", config.longest},
          {"rms_norm_eps", config.epsilon},
          {"initializer_range", config.deviation},
          {"tie_word_embeddings", config.tied},
          {"attention_dropout", 0.0},
          {"torch_dtype", "float32"}};
}

void add_rope(Json& json, const DecoderConfig& config, std::string_view family) {
  const SoftmaxHeads& first = heads_of(config, 0);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    LONGHAND_CHECK(rope_json(heads_of(config, i).rope) == rope_json(first.rope), family,
                   ": expected the same rotary positions in all layers, got different ones");
  }
  LONGHAND_CHECK(
      first.scores.scale == 0 && first.norm_of_heads() == HeadNorm::none &&
          config.embedding_scale == 1,
      family,
      ": expected a score scale of 1/sqrt(width), queries and keys without norms, and embeddings "
      "without a scale, got another configuration");
  json["hidden_act"] = hugging_face_name(config.activation);
  json["rope_theta"] = first.rope.base;
  json["rope_scaling"] = first.rope.factor == 1 ? Json() : rope_json(first.rope);
  json["rope_parameters"] = rope_json(first.rope);
}

std::int64_t add_windows(Json& json, const DecoderConfig& config, std::string_view family) {
  std::int64_t window = 0;
  Json::Array types;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::int64_t own = heads_of(config, i).window;
    LONGHAND_CHECK(own == 0 || window == 0 || own == window, family,
                   ": expected the same window in all layers with a window, got ", window, " and ",
                   own);
    if (own != 0) window = own;
    types.emplace_back(own == 0 ? "full_attention" : "sliding_attention");
  }
  json["sliding_window"] = window == 0 ? Json() : Json(window);
  json["layer_types"] = Json(std::move(types));
  return window;
}

std::vector<Exchange> llama_tensors(const Decoder& decoder) {
  std::vector<Exchange> all;
  const auto whole = [&](const Parameter& ours, const std::string& name) {
    if (ours) all.push_back({ours, {name}});
  };
  /// Adds the rows first .. first + count - 1 of one of our matrices and of its bias to the list of
  /// tensors. The published file stores these rows as separate tensors, whose names begin with
  /// `name`.
  const auto rows = [&](const Linear& ours, std::int64_t first, std::int64_t count,
                        const std::string& name) {
    all.push_back({ours.weight, {name + ".weight"}, false, {}, first, count});
    if (ours.bias) all.push_back({ours.bias, {name + ".bias"}, false, {}, first, count});
  };
  whole(decoder.embedding().weight, "model.embed_tokens.weight");
  for (std::int64_t i = 0; i < decoder.config().layers; ++i) {
    const Decoder::Block& block = decoder.block(i);
    const std::string name = text("model.layers.", i, '.');
    whole(block.norm1.weight(), name + "input_layernorm.weight");
    if (decoder.config().norms_after) {
      whole(block.norm1_after.weight(), name + "post_attention_layernorm.weight");
      whole(block.norm2.weight(), name + "pre_feedforward_layernorm.weight");
      whole(block.norm2_after.weight(), name + "post_feedforward_layernorm.weight");
    } else {
      whole(block.norm2.weight(), name + "post_attention_layernorm.weight");
    }
    const auto& heads = dynamic_cast<const AttentionHeads&>(*block.mixing.mixers().front());
    const std::int64_t queries = heads.heads * heads.width, keys = heads.key_heads * heads.width;
    const Linear& projection = block.mixing.projection;
    rows(projection, 0, queries, name + "self_attn.q_proj");
    rows(projection, queries, keys, name + "self_attn.k_proj");
    rows(projection, queries + keys, keys, name + "self_attn.v_proj");
    whole(heads.query_norm(), name + "self_attn.q_norm.weight");
    whole(heads.key_norm(), name + "self_attn.k_norm.weight");
    rows(block.mixing.out, 0, decoder.config().width, name + "self_attn.o_proj");
    const std::int64_t inner = decoder.config().inner;
    rows(block.gated.gate_up, 0, inner, name + "mlp.gate_proj");
    rows(block.gated.gate_up, inner, inner, name + "mlp.up_proj");
    rows(block.gated.down, 0, decoder.config().width, name + "mlp.down_proj");
  }
  whole(decoder.final_norm().weight(), "model.norm.weight");
  if (!decoder.config().tied) whole(decoder.output().weight, "lm_head.weight");
  return all;
}

}  // namespace longhand::nn
