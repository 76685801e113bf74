#include "nn/models/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autograd/combine.h"
#include "autograd/elementwise.h"
#include "autograd/gather.h"
#include "autograd/recompute.h"
#include "nn/losses.h"

namespace longhand::nn {
namespace {

DType activation_type(Backend& backend, DType parameters) {
  return backend.options().math == Math::bf16 && parameters == DType::f32 &&
                 supports(backend, DType::bf16)
             ? DType::bf16
             : parameters;
}

}  // namespace

Decoder::Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, Storage storage)
    : Model(backend, seed, storage),
      config_(std::move(config)),
      activations_(activation_type(backend, storage.type)),
      turns_(config_.longest),
      sinusoids_(config_.sinusoid_base, config_.longest) {
  check(config_);
  const DecoderConfig& c = config_;
  if (config_.outputs.empty()) config_.outputs = {c.vocabulary};
  const Initial initial = normal(c.deviation);
  const Scope root = scope();
  embedding_ = Embedding(root / "embedding", c.vocabulary, c.width, initial, c.embedding_scale);
  if (c.positions == Positions::learned) {
    positions_ = Embedding(root / "positions", c.longest, c.width, initial);
  }
  if (c.dropout > 0) embedding_dropout_ = Dropout(root, c.dropout);
  for (std::int64_t i = 0; i < c.layers; ++i) {
    blocks_.push_back(make_block(root / "blocks" / i, i));
    blocks_.back().mixing.build();
    add_adapters(blocks_.back(), root / "blocks" / i);
  }
  final_norm_ = Norm(root / "final_norm", c.width, c.norm, c.epsilon);
  if (c.tied) {
    outputs_.emplace_back().weight = embedding_.weight;
    return;
  }
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const Scope out = root / "output";
    outputs_.emplace_back(c.outputs.size() == 1 ? out : out / static_cast<std::int64_t>(i), c.width,
                          c.outputs[i], c.output_bias, initial);
  }
}

Decoder::Block Decoder::make_block(const Scope& scope, std::int64_t layer) const {
  const DecoderConfig& c = config_;
  const Initial read = normal(c.deviation);
  const Initial added = c.start == Start::residual
                            ? normal(c.deviation / std::sqrt(2.0 * static_cast<double>(c.layers)))
                            : read;
  const auto norm = [&](std::string_view name) {
    return Norm(scope / name, c.width, c.norm, c.epsilon);
  };
  Block block;
  block.norm1 = norm("norm1");
  block.norm2 = norm("norm2");
  if (c.norms_after) {
    block.norm1_after = norm("norm1_after");
    block.norm2_after = norm("norm2_after");
  }
  block.mixing = Mixing(scope / "mixing",
                        {.width = c.width,
                         .projection_bias = c.projection_bias,
                         .out_bias = c.mixing_bias,
                         .rotary = c.positions == Positions::rotary,
                         .epsilon = c.epsilon},
                        c.mixers_of(layer), read, added);
  const FeedForwardShape shape{c.width, c.inner, c.activation, c.feed_forward_bias};
  if (c.gated) {
    block.gated = GatedFeedForward(scope / "feed_forward", shape, read, added);
  } else {
    block.feed_forward = FeedForward(scope / "feed_forward", shape, read, added);
  }
  if (c.dropout > 0) {
    block.mixing_dropout = Dropout(scope, c.dropout);
    block.feed_forward_dropout = Dropout(scope, c.dropout);
  }
  return block;
}

void Decoder::add_adapters(Block& block, const Scope& scope) const {
  const LoraOptions& lora = config_.lora;
  const auto add = [&](Linear& to, const Scope& own, const Projected& part) {
    if (!lora.has(part.name)) return;
    to.adapters.emplace_back(own / "lora" / part.name, to.weight.shape().columns(), part, lora);
  };
  Mixing& mixing = block.mixing;
  const Scope mixers = scope / "mixing", feed_forward = scope / "feed_forward";
  for (std::size_t i = 0; i < mixing.mixers().size(); ++i) {
    const MixerPlace& place = mixing.places()[i];
    for (Projected part : mixing.mixers()[i]->projected()) {
      part.first += place.projection;
      add(mixing.projection, mixers / place.index, part);
    }
  }
  add(mixing.out, mixers, {"output", 0, config_.width});
  if (config_.gated) {
    add(block.gated.gate_up, feed_forward, {"gate", 0, config_.inner});
    add(block.gated.gate_up, feed_forward, {"up", config_.inner, config_.inner});
    add(block.gated.down, feed_forward, {"down", 0, config_.width});
  } else {
    add(block.feed_forward.up, feed_forward, {"up", 0, config_.inner});
    add(block.feed_forward.down, feed_forward, {"down", 0, config_.width});
  }
}

namespace {

/// All linear layers of a block. A block uses only one kind of feed forward. The layers of the
/// other kind are empty.
template <class Block>
auto linears(Block& block) {
  return std::array{&block.mixing.projection, &block.mixing.out,      &block.gated.gate_up,
                    &block.gated.down,        &block.feed_forward.up, &block.feed_forward.down};
}

}  // namespace

std::vector<Decoder::Adapter> Decoder::adapters() const {
  std::vector<Adapter> all;
  for (const Block& block : blocks_) {
    for (const Linear* const linear : linears(block)) {
      for (const Lora& lora : linear->adapters) all.push_back({linear->weight, lora});
    }
  }
  return all;
}

void Decoder::merge_adapters() {
  for (Block& block : blocks_) {
    for (Linear* const linear : linears(block)) {
      for (const Lora& lora : linear->adapters) lora.merge_into(linear->weight);
      linear->adapters.clear();
    }
  }
}

const Linear& Decoder::output(std::int64_t head) const {
  LONGHAND_CHECK(head >= 0 && head < static_cast<std::int64_t>(outputs_.size()),
                 "model: expected an output layer from 0 to ", outputs_.size() - 1, ", got ", head);
  return outputs_[static_cast<std::size_t>(head)];
}

std::vector<std::pair<std::string, double>> Decoder::learned_numbers() const {
  std::vector<std::pair<std::string, double>> numbers;
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    for (const LearnedNumber& number : blocks_[layer].mixing.learned_numbers()) {
      numbers.emplace_back(number.head ? text(number.name, ' ', layer, '.', *number.head)
                                       : text(number.name, ' ', layer),
                           number.value);
    }
  }
  return numbers;
}

void Decoder::prepare(std::int64_t longest) {
  switch (config_.positions) {
    case Positions::learned:
      LONGHAND_CHECK(longest <= config_.longest, "model: expected ",
                     config_.given_positions ? "positions below " : "sequences of at most ",
                     config_.longest, config_.given_positions ? "" : " tokens",
                     ", the number of learned positions, got ",
                     config_.given_positions ? longest - 1 : longest);
      break;
    case Positions::sinusoidal:
      sinusoids_.table(backend(), parameters().type(), config_.width, longest);
      break;
    default:
      break;
  }
  const auto most = most_tokens(config_);
  LONGHAND_CHECK(!most || longest <= *most, "model: expected sequences of at most ", *most,
                 " tokens, the limit of this model's heads, got ", longest);
  for (const Block& block : blocks_) block.mixing.prepare(turns_, longest);
}

bool Decoder::repeats() const {
  return std::ranges::all_of(config_.mixers, [](const MixerList& mixers) {
    return std::ranges::all_of(mixers, [](const AnyMixer& mixer) { return mixer->repeats(); });
  });
}

Var Decoder::embed(const Input& input) {
  const Var x = embedding_(input.ids, activations_);
  switch (config_.positions) {
    case Positions::learned:
      return add(x, positions_(input.positions, activations_));
    case Positions::sinusoidal:
      return add(x, longhand::embedding(sinusoids_.table(backend(), parameters().type(),
                                                         config_.width, input.longest),
                                        input.positions, activations_));
    default:
      return x;
  }
}

Var Decoder::mix(const Block& block, const Var& x, const Var& residual, const Pass& pass) {
  Mixing::Pass own{pass.input, turns_};
  if (pass.cache) own.cache.emplace(pass.cache->layer(pass.layer));
  if (pass.views) own.views = &pass.views->emplace_back();
  if (watch) {
    own.show = [&](std::string_view part, const Tensor& y) {
      show(text(pass.name, part.empty() ? "mixing" : "mixing.", part), y);
    };
  }
  if (!block.norm1_after && !block.mixing_dropout.draws()) return block.mixing(x, residual, own);
  const Var y = block.mixing(x, {}, own);
  return add(residual, block.mixing_dropout(block.norm1_after ? block.norm1_after(y) : y));
}

Var Decoder::feed(const Block& block, const Var& x, const Var& residual) const {
  const auto of = [&](const Var& added_to) {
    return config_.gated ? block.gated(x, added_to) : block.feed_forward(x, added_to);
  };
  if (!block.norm2_after && !block.feed_forward_dropout.draws()) return of(residual);
  const Var y = of({});
  return add(residual, block.feed_forward_dropout(block.norm2_after ? block.norm2_after(y) : y));
}

Var Decoder::run(const Block& block, const Var& x, const Pass& pass) {
  const Var normed = block.norm1(x);
  if (config_.order == Order::sequential) {
    const Var h = mix(block, normed, x, pass);
    return feed(block, block.norm2(h), h);
  }
  // Both norms are recorded on the tape first, so the backward pass reaches them last. By then, the
  // residual connection has already given x a gradient. Each norm adds its contribution to this
  // gradient in place, without a separate operation.
  const Var normed2 = block.norm2(x);
  return feed(block, normed2, mix(block, normed, x, pass));
}

Var Decoder::run_again_in_backward(const Block& block, const Var& x, const Pass& pass) {
  Var learned;
  for (const Parameter& p : parameters().under(text("blocks.", pass.layer))) {
    if (!p.frozen()) learned = p;
  }
  return recomputed(x, learned,
                    [this, &block, input = pass.input, layer = pass.layer](const Var& in) {
                      return run(block, in, Pass{.input = input, .layer = layer});
                    });
}

Var Decoder::run(Pass& pass) {
  LONGHAND_CHECK(pass.input.gives_positions == config_.given_positions, "model: expected ",
                 config_.given_positions ? "positions with the tokens, got none"
                                         : "no positions with the tokens, got positions");
  prepare(pass.input.longest);
  Var x = embedding_dropout_(embed(pass.input));
  show("embedding", x.value());
  for (const Block& block : blocks_) {
    if (watch) pass.name = text("blocks.", pass.layer, '.');
    x = recompute && !watch && !pass.views ? run_again_in_backward(block, x, pass)
                                           : run(block, x, pass);
    show(pass.name + "feed_forward", x.value());
    ++pass.layer;
  }
  x = final_norm_(x);
  show("final_norm", x.value());
  return x;
}

Var Decoder::features(const Input& input, KeyValueCache* cache) {
  Pass pass{.input = input, .cache = cache};
  return run(pass);
}

std::vector<std::vector<MixerView>> Decoder::look(const Input& input) {
  Views views;
  Pass pass{.input = input, .views = &views};
  run(pass);
  return views;
}

KeyValueCache Decoder::make_cache(std::span<const std::int32_t> capacities) const {
  KeyValueCache cache(backend(), capacities);
  for (const Block& block : blocks_) {
    cache.add_layer(block.mixing.make_cache(activations_, cache.rows(), std::ssize(capacities)));
  }
  return cache;
}

Var Decoder::logits(const Var& features, std::int64_t head) const {
  const Var y = output(head)(features, {.out = parameters().type()});
  show("logits", y.value());
  return y;
}

Loss Decoder::loss(const PlacedBatch& batch) {
  const Var x = features(batch.input);
  const Parameter& weight = output(batch.head).weight;
  // The fused loss supports only output layers without a bias.
  if (weight.shape().rows() >= many_classes && batch.targets && !config_.output_bias) {
    // Passes all logits to the observer, because the fused loss never computes all of them at once.
    if (watch) logits(x.value(), batch.head);
    return weight.blocks() ? linear_cross_entropy(x, weight.blocks(), batch)
                           : linear_cross_entropy(x, weight, batch);
  }
  return cross_entropy(logits(x, batch.head), batch, {.consume_logits = !watch});
}

}  // namespace longhand::nn
