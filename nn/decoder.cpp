#include "nn/decoder.h"

#include <bit>
#include <cmath>

#include "autograd/elementwise.h"
#include "autograd/gather.h"
#include "autograd/loss.h"
#include "autograd/rope.h"
#include "core/error.h"

namespace longhand::nn {
namespace {

bool supports(const Backend& backend, DType type) {
  try {
    backend.require_dtype(type);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Rows of a new table of positions, whatever the configuration says is the longest sequence.
constexpr std::int64_t most_at_first = 1 << 14;

DType activation_type(Backend& backend, DType parameters) {
  return backend.options().math == Math::bf16 && parameters == DType::f32 &&
                 supports(backend, DType::bf16)
             ? DType::bf16
             : parameters;
}

}  // namespace

std::vector<double> PositionTables::frequencies(std::int64_t dims) const {
  std::vector<double> all;
  for (std::int64_t p = 0; 2 * p < dims; ++p) {
    const float exponent = static_cast<float>(2 * p) / static_cast<float>(dims);
    all.push_back(1.0f / std::pow(static_cast<float>(base_), exponent));
  }
  return all;
}

std::int64_t PositionTables::rows(std::int64_t longest) const {
  const auto power = std::bit_ceil(static_cast<std::uint64_t>(longest));
  return std::max(std::min(longest_, most_at_first), static_cast<std::int64_t>(power));
}

const Tensor& PositionTables::rotary(Backend& backend, DType type, std::int64_t dims,
                                     std::int64_t longest) {
  Tensor& table = rotary_[dims];
  if (!table || table.rows() < longest) {
    if (table) replaced_.push_back(table);
    table = rope_table(backend, type, rows(longest), frequencies(dims));
  }
  return table;
}

const Tensor& PositionTables::sinusoidal(Backend& backend, DType type, std::int64_t dims,
                                         std::int64_t longest) {
  if (sinusoidal_ && sinusoidal_.rows() >= longest) return sinusoidal_;
  if (sinusoidal_) replaced_.push_back(sinusoidal_);
  const std::vector<double> f = frequencies(dims + dims % 2);
  const std::int64_t count = rows(longest);
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(count * dims));
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t i = 0; i < dims; ++i) {
      const double angle = static_cast<double>(p) * f[static_cast<std::size_t>(i / 2)];
      values.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  sinusoidal_ = Tensor::from(backend, {count, dims}, type, values);
  return sinusoidal_;
}

Decoder::Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, DType type)
    : config_(std::move(config)),
      activations_(activation_type(backend, type)),
      parameters_(backend, type, seed),
      tables_(config_.rope_base, config_.longest) {
  check(config_);
  const DecoderConfig& c = config_;
  if (config_.outputs.empty()) config_.outputs = {c.vocabulary};
  const Initial initial = normal(c.deviation);
  const Initial added = c.start == Start::residual
                            ? normal(c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers)))
                            : initial;
  const Scope root(parameters_), model = root / "gpt_neox";
  embedding_ = Embedding(model / "embed_in", c.vocabulary, c.width, initial);
  if (c.positions == Positions::learned) {
    positions_ = Embedding(model / "embed_positions", c.longest, c.width, initial);
  }
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope layer = model / "layers" / i, attention = layer / "attention", mlp = layer / "mlp";
    const std::int64_t wide = columns(c.heads_of(i)), chained = chacal_heads(c.heads_of(i));
    Block block;
    block.norm1 = LayerNorm(layer / "input_layernorm", c.width, c.epsilon);
    block.norm2 = LayerNorm(layer / "post_attention_layernorm", c.width, c.epsilon);
    block.projection =
        Linear(attention / "query_key_value", c.width, 3 * wide, c.attention_bias, initial);
    block.out = Linear(attention / "dense", wide, c.width, c.attention_bias, added);
    const Linear up(mlp / "dense_h_to_4h", c.width, c.inner, true, initial);
    const Linear down(mlp / "dense_4h_to_h", c.inner, c.width, true, added);
    block.feed_forward = FeedForward(up, down, c.activation);
    if (chained > 0 && c.learned_gamma != Learned::no) {
      block.gamma_logit =
          attention.add("gamma_logit", {c.learned_gamma == Learned::head ? chained : 1},
                        constant(std::log(c.gamma / (1 - c.gamma))), false);
    }
    if (c.temper != Temper::none) {
      block.beta = attention.add("beta", {1}, constant(c.beta), false);
    }
    blocks_.push_back(std::move(block));
  }
  final_norm_ = LayerNorm(model / "final_layer_norm", c.width, c.epsilon);
  gamma_ = Tensor::from(backend, {1}, type, std::vector<double>{c.gamma});
  if (c.tied) {
    outputs_.emplace_back().weight = embedding_.weight;
    return;
  }
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const Scope out = root / "embed_out";
    outputs_.emplace_back(c.outputs.size() == 1 ? out : out / static_cast<std::int64_t>(i), c.width,
                          c.outputs[i], false, initial);
  }
}

HeadOptions Decoder::head_options(std::int64_t layer) const {
  const Block& block = blocks_[static_cast<std::size_t>(layer)];
  return {.gamma = block.gamma_logit ? activate(Activation::sigmoid, block.gamma_logit) : gamma_,
          .temper = config_.temper,
          .beta = block.beta,
          .window = config_.window,
          .scale = config_.score_scale};
}

std::vector<std::pair<std::string, double>> Decoder::learned_numbers() const {
  std::vector<std::pair<std::string, double>> numbers;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    const Block& block = blocks_[static_cast<std::size_t>(layer)];
    if (block.gamma_logit) {
      const std::vector<double> gammas = head_options(layer).gamma.value().to_doubles();
      for (std::size_t h = 0; h < gammas.size(); ++h) {
        const bool each = config_.learned_gamma == Learned::head;
        numbers.emplace_back(each ? text("gamma ", layer, '.', h) : text("gamma ", layer),
                             gammas[h]);
      }
    }
    if (block.beta) numbers.emplace_back(text("beta ", layer), block.beta.value().item());
  }
  return numbers;
}

void Decoder::prepare(std::int64_t longest) {
  switch (config_.positions) {
    case Positions::learned:
      LONGHAND_CHECK(longest <= config_.longest, "model: expected sequences of at most ",
                     config_.longest, " tokens, its learned positions, got ", longest);
      return;
    case Positions::sinusoidal:
      tables_.sinusoidal(backend(), parameters_.type(), config_.width, longest);
      return;
    case Positions::rotary:
      for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
        for (const HeadGroup& group : config_.heads_of(layer)) {
          const std::int64_t dims = turned(group);
          if (dims > 0) tables_.rotary(backend(), parameters_.type(), dims, longest);
        }
      }
      return;
    default:
      return;
  }
}

Var Decoder::embed(const Input& input) {
  const Var x = embedding_(input.ids, activations_);
  switch (config_.positions) {
    case Positions::learned:
      return add(x, positions_(input.positions, activations_));
    case Positions::sinusoidal:
      return add(x, embedding(tables_.sinusoidal(backend(), parameters_.type(), config_.width,
                                                 input.longest),
                              input.positions, activations_));
    default:
      return x;
  }
}

Var Decoder::turn(Var qkv, const HeadList& heads, const Input& input) {
  for (const HeadPlace& place : places(heads)) {
    const HeadGroup& group = place.group;
    const std::int64_t dims = turned(group);
    if (dims == 0) continue;
    const Tensor& table = tables_.rotary(backend(), parameters_.type(), dims, input.longest);
    qkv = rope_in_place(qkv, input.positions, table,
                        {.first_column = place.projection,
                         .heads = 2 * group.heads,  // queries and keys
                         .width = group.width,
                         .dims = dims + dims % 2});
  }
  return qkv;
}

std::int64_t Decoder::turned(const HeadGroup& group) const {
  if (config_.positions != Positions::rotary) return 0;
  if (group.kind == HeadKind::fal && !config_.rope_in_fal) return 0;
  const auto dims =
      static_cast<std::int64_t>(config_.rope_share * static_cast<double>(group.width));
  return dims + dims % 2 <= group.width ? dims : dims - 1;
}

Var Decoder::attend(const Block& block, const Var& x, const Var& residual, const Pass& pass) {
  const Segments& segments = pass.input.segments;
  const HeadList& list = config_.heads_of(pass.layer);
  const Var qkv = turn(block.projection(x), list, pass.input);
  show(pass.name + "attention.query_key_value", qkv.value());
  CachedHeads cached;
  if (pass.cache) {
    pass.cache->store(pass.layer, qkv.value(), segments);
    cached = pass.cache->layer(pass.layer);
  }
  std::vector<Tensor> matches;
  const Var heads = mixed_attention(qkv, list, segments, cached, watch ? &matches : nullptr,
                                    head_options(pass.layer));
  show(pass.name + "attention.heads", heads.value());
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i]) show(text(pass.name, "attention.matches.", i), matches[i]);
  }
  const Var y = block.out(heads, {.residual = residual});
  show(pass.name + "attention", y.value());
  return y;
}

Var Decoder::run(const Block& block, const Var& x, const Pass& pass) {
  const Var normed = block.norm1(x);
  if (config_.order == Order::sequential) {
    const Var h = attend(block, normed, x, pass);
    return block.feed_forward(block.norm2(h), h);
  }
  // Both norms come first on the tape: backward then adds their shares to the gradient of x where
  // it lies.
  const Var normed2 = block.norm2(x);
  return block.feed_forward(normed2, attend(block, normed, x, pass));
}

Var Decoder::features(const Input& input, KeyValueCache* cache) {
  prepare(input.longest);
  Var x = embed(input);
  show("embedding", x.value());
  Pass pass{input, cache};
  for (const Block& block : blocks_) {
    if (watch) pass.name = text("layers.", pass.layer, '.');
    x = run(block, x, pass);
    show(pass.name + "mlp", x.value());
    ++pass.layer;
  }
  x = final_norm_(x);
  show("final_norm", x.value());
  return x;
}

KeyValueCache Decoder::make_cache(std::span<const std::int32_t> capacities) const {
  LONGHAND_CHECK(config_.temper != Temper::length,
                 "decoding: expected rows that do not depend on what comes later, got a model "
                 "tempered by the whole length");
  std::vector<HeadList> layers;
  for (std::int64_t i = 0; i < config_.layers; ++i) layers.push_back(config_.heads_of(i));
  return {backend(), activations_, std::move(layers), capacities};
}

Var Decoder::logits(const Var& features, std::int64_t head) const {
  LONGHAND_CHECK(head >= 0 && head < static_cast<std::int64_t>(outputs_.size()),
                 "model: expected an output layer from 0 to ", outputs_.size() - 1, ", got ", head);
  const Var y = outputs_[static_cast<std::size_t>(head)](features, {.out = parameters_.type()});
  show("logits", y.value());
  return y;
}

Loss Decoder::loss(const PlacedBatch& batch) {
  const Tensor hits(backend(), {1}, parameters_.type());
  const Var y = logits(features(batch.input), batch.head);
  return {cross_entropy(y, batch.targets,
                        {.groups = batch.targets.columns(),
                         .weights = batch.weights,
                         .hits = hits,
                         .consume_logits = !watch}),
          hits};
}

}  // namespace longhand::nn
