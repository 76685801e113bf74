#include "nn/gpt_neox.h"

#include "core/error.h"
#include "core/quote.h"

namespace longhand::nn {
namespace {

/// transformers turns the next even number of a head's entries where the share of them is odd, and
/// has no such model where that is more than there are.
void check_share(std::string_view source, std::int64_t width, double share) {
  const auto dims = static_cast<std::int64_t>(share * static_cast<double>(width));
  LONGHAND_CHECK(dims + dims % 2 <= width, source, ": expected rotary positions that turn at most ",
                 width, " entries, the width of a head, in pairs, got ", dims);
}

DecoderConfig config_from(const Fields& fields) {
  fields.must_be("tie_word_embeddings", false, false);
  LONGHAND_CHECK(!fields.find("rope_scaling"), fields.source(),
                 ": rope_scaling: expected none, got ", quote(fields.find("rope_scaling")->dump()));

  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size");
  config.width = fields.size("hidden_size");
  config.layers = fields.size("num_hidden_layers");
  config.inner = fields.size("intermediate_size");
  const std::int64_t heads = fields.size("num_attention_heads");
  LONGHAND_CHECK(config.width % heads == 0, fields.source(),
                 ": num_attention_heads: expected a divisor of ", config.width,
                 " (hidden_size), got ", heads);
  config.heads = {{{HeadKind::softmax, heads, config.width / heads}}};
  config.longest = fields.size("max_position_embeddings", 2048);
  config.order = fields.flag("use_parallel_residual", true) ? Order::parallel : Order::sequential;
  config.attention_bias = fields.flag("attention_bias", true);
  config.epsilon = fields.number("layer_norm_eps", 1e-5);
  config.deviation = fields.number("initializer_range", 0.02);
  config.activation = fields.activation("hidden_act", "gelu");
  config.rope_base = fields.number("rotary_emb_base", 10000);
  config.rope_share = fields.number("rotary_pct", 0.25);
  if (const Json* const rope = fields.find("rope_parameters")) {
    const Fields inner(*rope, fields.source());
    const std::string kind = inner.word("rope_type", "default");
    LONGHAND_CHECK(kind == "default", fields.source(), ": rope_type: expected default, got ",
                   quote(kind));
    config.rope_base = inner.number("rope_theta", config.rope_base);
    config.rope_share = inner.number("partial_rotary_factor", config.rope_share);
  }
  LONGHAND_CHECK(config.rope_share >= 0 && config.rope_share <= 1 && config.rope_base > 0,
                 fields.source(), ": expected a rotary share from 0 to 1 and a base above 0, got ",
                 config.rope_share, " and ", config.rope_base);
  check_share(fields.source(), config.width / heads, config.rope_share);
  return config;
}

std::string json_of(const DecoderConfig& config) {
  const HeadGroup heads = plain_heads(config, "gpt_neox");
  LONGHAND_CHECK(config.positions == Positions::rotary,
                 "gpt_neox: expected rotary positions (learned ones make a GPT-2), got ",
                 names_of<Positions>[static_cast<std::size_t>(config.positions)]);
  LONGHAND_CHECK(!config.tied, "gpt_neox: expected an output layer of its own, got a tied one");
  LONGHAND_CHECK(!config.score_scale, "gpt_neox: expected scores times 1/sqrt(width), got times ",
                 *config.score_scale);
  check_share("gpt_neox", heads.width, config.rope_share);
  const Json object{{"architectures", {"GPTNeoXForCausalLM"}},
                    {"model_type", "gpt_neox"},
                    {"vocab_size", config.vocabulary},
                    {"hidden_size", config.width},
                    {"num_hidden_layers", config.layers},
                    {"num_attention_heads", heads.heads},
                    {"intermediate_size", config.inner},
                    {"hidden_act", hugging_face_name(config.activation)},
                    {"max_position_embeddings", config.longest},
                    {"initializer_range", config.deviation},
                    {"layer_norm_eps", config.epsilon},
                    {"use_parallel_residual", config.order == Order::parallel},
                    {"attention_bias", config.attention_bias},
                    {"attention_dropout", 0.0},
                    {"hidden_dropout", 0.0},
                    {"rotary_emb_base", config.rope_base},  // older readers
                    {"rotary_pct", config.rope_share},
                    {"rope_parameters",
                     {{"rope_type", "default"},
                      {"rope_theta", config.rope_base},
                      {"partial_rotary_factor", config.rope_share}}},
                    {"tie_word_embeddings", false},
                    {"bos_token_id", nullptr},
                    {"eos_token_id", nullptr},
                    {"torch_dtype", "float32"}};
  return object.dump(2) + "\n";
}

std::vector<Exchange> tensors_of(const Decoder& decoder) {
  std::vector<Exchange> all;
  for (const Parameter& p : decoder.parameters().all()) {
    if (p.name().ends_with(".gamma_logit") || p.name().ends_with(".beta")) continue;  // ours alone
    Exchange tensor{p, {p.name()}};
    if (p.name() == "embed_out.weight") tensor.names.emplace_back("lm_head.weight");
    all.push_back(std::move(tensor));
  }
  for (std::int64_t i = 0; i < decoder.config().layers; ++i) {
    const std::string projection = text("gpt_neox.layers.", i, ".attention.query_key_value.");
    for (Exchange& tensor : all) {
      if (tensor.names[0].starts_with(projection)) {
        tensor.rows = gpt_neox_rows(decoder.config().heads_of(i));
      }
    }
  }
  return all;
}

}  // namespace

Family gpt_neox_family() { return {"gpt_neox", config_from, json_of, tensors_of}; }

std::vector<std::int64_t> gpt_neox_rows(const HeadList& heads) {
  std::vector<std::int64_t> rows;
  std::int64_t first_head = 0;
  for (const HeadGroup& group : heads) {
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t head = 0; head < group.heads; ++head) {
        for (std::int64_t i = 0; i < group.width; ++i) {
          rows.push_back(((first_head + head) * 3 + part) * group.width + i);
        }
      }
    }
    first_head += group.heads;
  }
  return rows;
}

}  // namespace longhand::nn
