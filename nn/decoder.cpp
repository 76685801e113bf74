#include "nn/decoder.h"

#include <bit>
#include <cmath>

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

DType activation_type(Backend& backend, DType parameters) {
  return backend.options().math == Math::bf16 && parameters == DType::f32 &&
                 supports(backend, DType::bf16)
             ? DType::bf16
             : parameters;
}

}  // namespace

Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals) {
  if (totals.empty()) totals = lengths;
  LONGHAND_CHECK(totals.size() == lengths.size(), "input: expected ", lengths.size(),
                 " totals (sequences), got ", totals.size());
  const auto count = static_cast<std::int64_t>(tokens.size());
  std::vector<std::int32_t> positions;
  positions.reserve(tokens.size());
  std::int64_t longest = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    for (std::int32_t i = totals[s] - lengths[s]; i < totals[s]; ++i) positions.push_back(i);
    longest = std::max<std::int64_t>(longest, totals[s]);
  }
  LONGHAND_CHECK(positions.size() == tokens.size(), "input: expected lengths that add up to ",
                 tokens.size(), " tokens, got ", positions.size());
  return {Tensor::from(backend, {count}, tokens), Tensor::from(backend, {count}, positions),
          Segments(backend, lengths), longest};
}

const Tensor& RopeTables::get(Backend& backend, DType type, std::int64_t dims,
                              std::int64_t longest) {
  Tensor& table = tables_[dims];
  if (table && table.shape()[0] >= longest) return table;
  std::vector<double> frequencies;
  for (std::int64_t p = 0; p < dims / 2; ++p) {
    const float exponent = static_cast<float>(2 * p) / static_cast<float>(dims);
    frequencies.push_back(1.0f / std::pow(static_cast<float>(base_), exponent));
  }
  const auto rows = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest)));
  table = rope_table(backend, type, std::max(longest_, rows), frequencies);
  return table;
}

Decoder::Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, DType type)
    : config_(std::move(config)),
      activations_(activation_type(backend, type)),
      parameters_(backend, type, seed),
      rope_(config_.rope_base, config_.longest) {
  const DecoderConfig& c = config_;
  LONGHAND_CHECK(c.vocabulary >= 1 && c.width >= 1 && c.inner >= 1 && !c.heads.empty(),
                 "model: expected a vocabulary, widths and heads, got vocabulary ", c.vocabulary,
                 ", width ", c.width, ", inner ", c.inner, ", ", c.heads.size(), " kinds of heads");
  if (config_.outputs.empty()) config_.outputs = {c.vocabulary};
  const Initial initial = normal(c.deviation);
  const Scope root(parameters_), model = root / "gpt_neox";
  embedding_ = Embedding(model / "embed_in", c.vocabulary, c.width, initial);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope layer = model / "layers" / i, attention = layer / "attention", mlp = layer / "mlp";
    Block block;
    block.norm1 = LayerNorm(layer / "input_layernorm", c.width, c.epsilon);
    block.norm2 = LayerNorm(layer / "post_attention_layernorm", c.width, c.epsilon);
    block.projection = Linear(attention / "query_key_value", c.width, 3 * columns(c.heads),
                              c.attention_bias, initial);
    block.out = Linear(attention / "dense", columns(c.heads), c.width, c.attention_bias, initial);
    const Linear up(mlp / "dense_h_to_4h", c.width, c.inner, true, initial);
    const Linear down(mlp / "dense_4h_to_h", c.inner, c.width, true, initial);
    block.feed_forward = FeedForward(up, down, c.activation);
    blocks_.push_back(std::move(block));
  }
  final_norm_ = LayerNorm(model / "final_layer_norm", c.width, c.epsilon);
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const Scope out = root / "embed_out";
    outputs_.emplace_back(c.outputs.size() == 1 ? out : out / static_cast<std::int64_t>(i), c.width,
                          c.outputs[i], false, initial);
  }
}

Var Decoder::turn(Var qkv, const Input& input) {
  for (const HeadPlace& place : places(config_.heads)) {
    const HeadGroup& group = place.group;
    if (group.kind == HeadKind::fal && !config_.rope_in_fal) continue;
    const auto dims =
        static_cast<std::int64_t>(config_.rope_share * static_cast<double>(group.width)) / 2 * 2;
    if (dims == 0) continue;
    const Tensor& table = rope_.get(backend(), parameters_.type(), dims, input.longest);
    qkv = rope_in_place(qkv, input.positions, table,
                        {.first_column = place.projection,
                         .heads = 2 * group.heads,  // queries and keys
                         .width = group.width,
                         .dims = dims});
  }
  return qkv;
}

Var Decoder::attend(const Block& block, const Var& x, const Var& residual, const Pass& pass) {
  const Segments& segments = pass.input.segments;
  const Var qkv = turn(block.projection(x), pass.input);
  show(pass.name + "attention.query_key_value", qkv.value());
  CachedHeads cached;
  if (pass.cache) {
    pass.cache->store(pass.layer, qkv.value(), segments);
    cached = pass.cache->layer(pass.layer);
  }
  std::vector<Tensor> matches;
  const Var heads =
      mixed_attention(qkv, config_.heads, segments, cached, watch ? &matches : nullptr);
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
  if (!config_.parallel) {
    const Var h = attend(block, normed, x, pass);
    return block.feed_forward(block.norm2(h), h);
  }
  // Both norms come first on the tape: backward then adds their shares to the gradient of x where
  // it lies.
  const Var normed2 = block.norm2(x);
  return block.feed_forward(normed2, attend(block, normed, x, pass));
}

Var Decoder::features(const Input& input, KeyValueCache* cache) {
  Var x = embedding_(input.ids, activations_);
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
  return {backend(), activations_, config_.heads, config_.layers, capacities};
}

Var Decoder::logits(const Var& features, std::int64_t head) const {
  LONGHAND_CHECK(head >= 0 && head < static_cast<std::int64_t>(outputs_.size()),
                 "model: expected an output layer from 0 to ", outputs_.size() - 1, ", got ", head);
  const Var y = outputs_[static_cast<std::size_t>(head)](features, {.out = parameters_.type()});
  show("logits", y.value());
  return y;
}

Loss Decoder::loss(const Batch& batch) {
  const auto rows = static_cast<std::int64_t>(batch.tokens.size());
  const Shape choices{rows, batch.groups};
  const Input input = make_input(backend(), batch.tokens, batch.lengths);
  const Tensor targets = Tensor::from(backend(), choices, batch.targets);
  Tensor weights;
  if (!batch.weights.empty()) {
    const std::vector<double> wide(batch.weights.begin(), batch.weights.end());
    weights = Tensor::from(backend(), choices, parameters_.type(), wide);
  }
  const Tensor hits(backend(), {1}, parameters_.type());
  const Var y = logits(features(input), batch.head);
  return {cross_entropy(
              y, targets,
              {.groups = batch.groups, .weights = weights, .hits = hits, .consume_logits = !watch}),
          hits};
}

}  // namespace longhand::nn
