#include "nn/gpt2.h"

#include <algorithm>

#include "core/error.h"

namespace longhand::nn {
namespace {

DecoderConfig config_from(const Fields& fields) {
  fields.must_be("scale_attn_by_inverse_layer_idx", false, false);
  fields.must_be("add_cross_attention", false, false);

  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size", 50257);
  config.width = fields.size("n_embd", 768);
  config.layers = fields.size("n_layer", 12);
  config.inner = fields.size("n_inner", 4 * config.width);
  const std::int64_t heads = fields.size("n_head", 12);
  LONGHAND_CHECK(config.width % heads == 0, fields.source(), ": n_head: expected a divisor of ",
                 config.width, " (n_embd), got ", heads);
  config.heads = {{{HeadKind::softmax, heads, config.width / heads}}};
  config.order = Order::sequential;
  config.activation = fields.activation("activation_function", "gelu_new");
  config.epsilon = fields.number("layer_norm_epsilon", 1e-5);
  if (!fields.flag("scale_attn_weights", true)) config.score_scale = 1;
  config.positions = Positions::learned;
  config.longest = fields.size("n_positions", 1024);
  config.tied = fields.flag("tie_word_embeddings", true);
  config.start = Start::residual;
  config.deviation = fields.number("initializer_range", 0.02);
  return config;
}

std::string json_of(const DecoderConfig& config) {
  const HeadGroup heads = plain_heads(config, "gpt2");
  LONGHAND_CHECK(config.order == Order::sequential,
                 "gpt2: expected blocks in sequential order, got parallel ones");
  LONGHAND_CHECK(config.attention_bias, "gpt2: expected biases in the attention, got none");
  LONGHAND_CHECK(!config.score_scale || *config.score_scale == 1,
                 "gpt2: expected scores times 1/sqrt(width) or 1, got times ", *config.score_scale);
  const Json object{{"architectures", {"GPT2LMHeadModel"}},
                    {"model_type", "gpt2"},
                    {"vocab_size", config.vocabulary},
                    {"n_positions", config.longest},
                    {"n_embd", config.width},
                    {"n_layer", config.layers},
                    {"n_head", heads.heads},
                    {"n_inner", config.inner},
                    {"activation_function", hugging_face_name(config.activation)},
                    {"layer_norm_epsilon", config.epsilon},
                    {"initializer_range", config.deviation},
                    {"scale_attn_weights", !config.score_scale},
                    {"resid_pdrop", 0.0},
                    {"embd_pdrop", 0.0},
                    {"attn_pdrop", 0.0},
                    {"tie_word_embeddings", config.tied},
                    {"bos_token_id", nullptr},
                    {"eos_token_id", nullptr},
                    {"torch_dtype", "float32"}};
  return object.dump(2) + "\n";
}

/// Theirs: all queries, all keys, all values, each head by head; ours group after group.
std::vector<std::int64_t> rows_of(const HeadList& heads) {
  const std::int64_t all = columns(heads);
  std::vector<std::int64_t> rows;
  for (const HeadPlace& place : places(heads)) {
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t i = 0; i < place.group.columns(); ++i) {
        rows.push_back(part * all + place.output + i);
      }
    }
  }
  return rows;
}

struct Part {
  std::string_view ours, theirs;
  bool transposed = false;
};
constexpr Part parts[] = {{"input_layernorm.weight", "ln_1.weight"},
                          {"input_layernorm.bias", "ln_1.bias"},
                          {"attention.query_key_value.weight", "attn.c_attn.weight", true},
                          {"attention.query_key_value.bias", "attn.c_attn.bias"},
                          {"attention.dense.weight", "attn.c_proj.weight", true},
                          {"attention.dense.bias", "attn.c_proj.bias"},
                          {"post_attention_layernorm.weight", "ln_2.weight"},
                          {"post_attention_layernorm.bias", "ln_2.bias"},
                          {"mlp.dense_h_to_4h.weight", "mlp.c_fc.weight", true},
                          {"mlp.dense_h_to_4h.bias", "mlp.c_fc.bias"},
                          {"mlp.dense_4h_to_h.weight", "mlp.c_proj.weight", true},
                          {"mlp.dense_4h_to_h.bias", "mlp.c_proj.bias"}};

/// GPT2LMHeadModel's name first; GPT2Model's, which the first published files have, goes without
/// the prefix.
std::vector<std::string> names(const std::string& name) { return {"transformer." + name, name}; }

std::vector<Exchange> tensors_of(const Decoder& decoder) {
  const Parameters& parameters = decoder.parameters();
  const auto ours = [&](const std::string& name) {
    const Parameter* const found = parameters.find(name);
    LONGHAND_CHECK(found, "gpt2: expected a model with ", name, ", got one without");
    return *found;
  };
  std::vector<Exchange> all{{ours("gpt_neox.embed_in.weight"), names("wte.weight")},
                            {ours("gpt_neox.embed_positions.weight"), names("wpe.weight")}};
  for (std::int64_t i = 0; i < decoder.config().layers; ++i) {
    for (const Part& part : parts) {
      Exchange tensor{ours(text("gpt_neox.layers.", i, '.', part.ours)),
                      names(text("h.", i, '.', part.theirs)), part.transposed};
      if (part.theirs.starts_with("attn.c_attn")) {
        tensor.rows = rows_of(decoder.config().heads_of(i));
      }
      all.push_back(std::move(tensor));
    }
  }
  all.push_back({ours("gpt_neox.final_layer_norm.weight"), names("ln_f.weight")});
  all.push_back({ours("gpt_neox.final_layer_norm.bias"), names("ln_f.bias")});
  if (!decoder.config().tied) all.push_back({ours("embed_out.weight"), {"lm_head.weight"}});
  return all;
}

}  // namespace

Family gpt2_family() { return {"gpt2", config_from, json_of, tensors_of}; }

}  // namespace longhand::nn
