#include "core/error.h"
#include "core/quote.h"
#include "nn/models/hugging_face.h"
#include "nn/released_names.h"

/// GPT-NeoX. In the file, the matrix query_key_value contains one head after another. Each head has
/// the rows of its query, then its key, then its value. nn/mixer_core/attention_heads.h describes
/// the layout of this library.
namespace longhand::nn {
namespace {

/// Throws an Error if the Python package transformers cannot rotate this share of a head's entries.
/// The package rounds an odd number of rotated entries up to the next even number, which must not
/// exceed the head's width.
void check_share(std::string_view source, std::int64_t width, double share) {
  const auto dims = static_cast<std::int64_t>(share * static_cast<double>(width));
  LONGHAND_CHECK(dims + dims % 2 <= width, source,
                 ": expected a number of rotated entries that, rounded up to an even number, is at "
                 "most the width of a head, ",
                 width, "; got ", dims, " rotated entries");
}

DecoderConfig config_from(const Fields& fields) {
  fields.must_be("tie_word_embeddings", false, false);
  LONGHAND_CHECK(!fields.find("rope_scaling"), fields.source(),
                 ": rope_scaling: expected none, got ", quote(fields.find("rope_scaling")->dump()));

  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size");
  config.width = fields.size("hidden_size");
  config.layers = fields.layers("num_hidden_layers");
  config.inner = fields.size("intermediate_size");
  const std::int64_t heads = fields.size("num_attention_heads");
  LONGHAND_CHECK(config.width % heads == 0, fields.source(),
                 ": num_attention_heads: expected a divisor of ", config.width,
                 " (hidden_size), got ", heads);
  SoftmaxHeads mixer;
  mixer.heads = mixer.key_heads = heads;
  mixer.width = config.width / heads;
  config.longest = fields.size("max_position_embeddings", 2048);
  config.order = fields.flag("use_parallel_residual", true) ? Order::parallel : Order::sequential;
  config.projection_bias = config.mixing_bias = fields.flag("attention_bias", true);
  config.epsilon = fields.number("layer_norm_eps", 1e-5);
  config.deviation = fields.number("initializer_range", 0.02);
  config.activation = fields.activation("hidden_act", "gelu");
  mixer.rope.base = fields.number("rotary_emb_base", 10000);
  mixer.rope.share = fields.number("rotary_pct", 0.25);
  if (const Json* const rope = fields.find("rope_parameters")) {
    const Fields inner(*rope, fields.source());
    const std::string kind = inner.word("rope_type", "default");
    LONGHAND_CHECK(kind == "default", fields.source(), ": rope_type: expected default, got ",
                   quote(kind));
    mixer.rope.base = inner.number("rope_theta", mixer.rope.base);
    mixer.rope.share = inner.number("partial_rotary_factor", mixer.rope.share);
  }
  LONGHAND_CHECK(mixer.rope.share >= 0 && mixer.rope.share <= 1 && mixer.rope.base > 0,
                 fields.source(),
                 ": expected rotary_pct or partial_rotary_factor from 0 to 1, and rotary_emb_base "
                 "or rope_theta above 0, got ",
                 mixer.rope.share, " and ", mixer.rope.base);
  check_share(fields.source(), mixer.width, mixer.rope.share);
  config.mixers = softmax_layers(mixer);
  return config;
}

Json json_of(const DecoderConfig& config) {
  const PlainHeads heads = plain_heads(config, "gpt_neox");
  const RopeOptions& rope = heads.options->rope;
  const double scale = heads.options->scores.scale;
  LONGHAND_CHECK(config.positions == Positions::rotary, "gpt_neox: expected rotary positions, got ",
                 names_of<Positions>[static_cast<std::size_t>(config.positions)]);
  LONGHAND_CHECK(
      !config.tied,
      "gpt_neox: expected an output layer that is not tied to the embedding, got a tied one");
  LONGHAND_CHECK(scale == 0, "gpt_neox: expected a score scale of 1/sqrt(width), got ", scale);
  LONGHAND_CHECK(config.projection_bias == config.mixing_bias,
                 "gpt_neox: expected biases in all projections of the attention or in none");
  check_share("gpt_neox", heads.width, rope.share);
  return {{"architectures", {"GPTNeoXForCausalLM"}},
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
          {"attention_bias", config.projection_bias},
          {"attention_dropout", 0.0},
          {"hidden_dropout", 0.0},
          {"rotary_emb_base", rope.base},  // read by older versions of the package transformers
          {"rotary_pct", rope.share},
          {"rope_parameters",
           {{"rope_type", "default"},
            {"rope_theta", rope.base},
            {"partial_rotary_factor", rope.share}}},
          {"tie_word_embeddings", false},
          {"torch_dtype", "float32"}};
}

/// Maps the rows of the matrix that computes queries, keys and values. Entry r of the result is the
/// row of query_key_value in the file that corresponds to row r of our matrix.
std::vector<std::int64_t> rows_of(const MixerList& mixers) {
  std::vector<std::int64_t> rows;
  std::int64_t first_head = 0;
  for (const AnyMixer& mixer : mixers) {
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t head = 0; head < mixer->heads; ++head) {
        for (std::int64_t i = 0; i < mixer->width; ++i) {
          rows.push_back(((first_head + head) * 3 + part) * mixer->width + i);
        }
      }
    }
    first_head += mixer->heads;
  }
  return rows;
}

std::vector<Exchange> tensors_of(const Decoder& decoder) {
  std::vector<Exchange> all;
  const auto add = [&](const Parameter& ours, std::vector<std::int64_t> rows = {}) {
    if (ours) all.push_back({ours, {released_name(ours.name())}, false, std::move(rows)});
  };
  add(decoder.embedding().weight);
  for (std::int64_t i = 0; i < decoder.config().layers; ++i) {
    const Decoder::Block& block = decoder.block(i);
    for (const Norm* const norm : {&block.norm1, &block.norm2}) {
      add(norm->weight());
      add(norm->bias());
    }
    const Linear& projection = block.mixing.projection;
    add(projection.weight, rows_of(block.mixing.mixers()));
    add(projection.bias, rows_of(block.mixing.mixers()));
    for (const Linear* const linear :
         {&block.mixing.out, &block.feed_forward.up, &block.feed_forward.down}) {
      add(linear->weight);
      add(linear->bias);
    }
  }
  add(decoder.final_norm().weight());
  add(decoder.final_norm().bias());
  add(decoder.output().weight);
  all.back().names.emplace_back("lm_head.weight");
  return all;
}

bool claims(const DecoderConfig& config) {
  return config.positions != Positions::learned && config.norm == NormKind::layer;
}

}  // namespace

extern const Family gpt_neox_family;
constinit const Family gpt_neox_family{"gpt_neox", config_from, claims, json_of, tensors_of};

}  // namespace longhand::nn
