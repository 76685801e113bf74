#include "core/error.h"
#include "nn/models/hugging_face.h"

/// GPT-2. The file stores the matrices of the blocks transposed, as [in, out] (Conv1D). By default,
/// the weight of the output layer is the weight of the embedding.
namespace longhand::nn {
namespace {

DecoderConfig config_from(const Fields& fields) {
  fields.must_be("scale_attn_by_inverse_layer_idx", false, false);
  fields.must_be("add_cross_attention", false, false);

  DecoderConfig config;
  config.vocabulary = fields.size("vocab_size", 50257);
  config.width = fields.size("n_embd", 768);
  config.layers = fields.layers("n_layer", 12);
  config.inner = fields.size("n_inner", 4 * config.width);
  const std::int64_t heads = fields.size("n_head", 12);
  LONGHAND_CHECK(config.width % heads == 0, fields.source(), ": n_head: expected a divisor of ",
                 config.width, " (n_embd), got ", heads);
  SoftmaxHeads mixer;
  mixer.heads = mixer.key_heads = heads;
  mixer.width = config.width / heads;
  if (!fields.flag("scale_attn_weights", true)) mixer.scores.scale = 1;
  config.mixers = softmax_layers(mixer);
  config.order = Order::sequential;
  config.activation = fields.activation("activation_function", "gelu_new");
  config.epsilon = fields.number("layer_norm_epsilon", 1e-5);
  config.positions = Positions::learned;
  config.longest = fields.size("n_positions", 1024);
  config.tied = fields.flag("tie_word_embeddings", true);
  config.start = Start::residual;
  config.deviation = fields.number("initializer_range", 0.02);
  return config;
}

Json json_of(const DecoderConfig& config) {
  const PlainHeads heads = plain_heads(config, "gpt2");
  const double scale = heads.options->scores.scale;
  LONGHAND_CHECK(config.order == Order::sequential,
                 "gpt2: expected blocks in sequential order, got parallel ones");
  LONGHAND_CHECK(config.projection_bias && config.mixing_bias,
                 "gpt2: expected biases in the attention, got none");
  LONGHAND_CHECK(scale == 0 || scale == 1,
                 "gpt2: expected a score scale of 1/sqrt(width) or 1, got ", scale);
  return {{"architectures", {"GPT2LMHeadModel"}},
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
          {"scale_attn_weights", scale == 0},
          {"resid_pdrop", 0.0},
          {"embd_pdrop", 0.0},
          {"attn_pdrop", 0.0},
          {"tie_word_embeddings", config.tied},
          {"torch_dtype", "float32"}};
}

/// Maps the rows of the matrix that computes queries, keys and values. Entry r of the result is the
/// row of the file's matrix that corresponds to row r of our matrix. The file stores all queries,
/// then all keys, then all values. We store the queries, keys and values of the first mixer (group
/// of heads), then those of the next mixer.
std::vector<std::int64_t> rows_of(const Mixing& mixing) {
  const std::int64_t all = columns(mixing.mixers());
  std::vector<std::int64_t> rows;
  for (std::size_t m = 0; m < mixing.mixers().size(); ++m) {
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t i = 0; i < mixing.mixers()[m]->columns(); ++i) {
        rows.push_back(part * all + mixing.places()[m].output + i);
      }
    }
  }
  return rows;
}

/// The names of a tensor in GPT2LMHeadModel and in GPT2Model. The original files use the names of
/// GPT2Model, which have no prefix.
std::vector<std::string> names(const std::string& name) { return {"transformer." + name, name}; }

std::vector<Exchange> tensors_of(const Decoder& decoder) {
  std::vector<Exchange> all{{decoder.embedding().weight, names("wte.weight")},
                            {decoder.positions().weight, names("wpe.weight")}};
  const auto norm = [&](const std::string& name, const Norm& ours) {
    all.push_back({ours.weight(), names(name + ".weight")});
    all.push_back({ours.bias(), names(name + ".bias")});
  };
  const auto linear = [&](const std::string& name, const Linear& ours,
                          const std::vector<std::int64_t>& rows = {}) {
    all.push_back({ours.weight, names(name + ".weight"), true, rows});
    all.push_back({ours.bias, names(name + ".bias"), false, rows});
  };
  for (std::int64_t i = 0; i < decoder.config().layers; ++i) {
    const Decoder::Block& block = decoder.block(i);
    const std::string name = text("h.", i, '.');
    norm(name + "ln_1", block.norm1);
    linear(name + "attn.c_attn", block.mixing.projection, rows_of(block.mixing));
    linear(name + "attn.c_proj", block.mixing.out);
    norm(name + "ln_2", block.norm2);
    linear(name + "mlp.c_fc", block.feed_forward.up);
    linear(name + "mlp.c_proj", block.feed_forward.down);
  }
  norm("ln_f", decoder.final_norm());
  if (!decoder.config().tied) all.push_back({decoder.output().weight, {"lm_head.weight"}});
  return all;
}

bool claims(const DecoderConfig& config) { return config.positions == Positions::learned; }

}  // namespace

extern const Family gpt2_family;
constinit const Family gpt2_family{"gpt2", config_from, claims, json_of, tensors_of};

}  // namespace longhand::nn
