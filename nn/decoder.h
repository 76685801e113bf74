#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/segments.h"
#include "nn/cache.h"
#include "nn/heads.h"
#include "nn/layers.h"
#include "nn/model.h"

namespace longhand::nn {

/// A transformer that reads from left to right: token embeddings, blocks of attention and feed
/// forward around a residual stream, a final LayerNorm, one or several output layers. Defaults are
/// GPT-NeoX's.
struct DecoderConfig {
  std::int64_t vocabulary = 0;
  std::int64_t width = 64, layers = 6;
  std::int64_t inner = 192;  // width inside the feed forward
  HeadList heads = {};       // of every layer
  /// Rotary positions turn this share of each softmax head's entries; 0: no positions at all.
  double rope_share = 1;
  double rope_base = 10000;
  bool rope_in_fal = false;
  std::int64_t longest =
      2048;  // positions the tables are made for at first; more are added when met
  /// true: x + attention(norm1 x) + feed_forward(norm2 x)
  /// false: h = x + attention(norm1 x);  h + feed_forward(norm2 h)
  bool parallel = true;
  bool attention_bias = true;
  Activation activation = Activation::gelu;
  double epsilon = 1e-5;
  double deviation = 0.02;  // of initial weights
  std::vector<std::int64_t> outputs =
      {};  // classes of each output layer; empty: one, the vocabulary
};

/// Tokens in the backend's memory, with their places in their sequences.
struct Input {
  Tensor ids, positions;  // i32 [tokens]
  Segments segments;
  std::int64_t longest = 0;  // one more than the largest position
};
/// The tokens are the last `lengths` of sequences that have `totals` tokens; those before lie in a
/// cache. Without totals each sequence is whole.
Input make_input(Backend& backend, std::span<const std::int32_t> tokens,
                 std::span<const std::int32_t> lengths, std::span<const std::int32_t> totals = {});

/// Tables of cosines and sines for any width, grown when a later position is met.
class RopeTables {
 public:
  RopeTables() = default;
  RopeTables(double base, std::int64_t longest) : base_(base), longest_(longest) {}
  /// Frequencies base^(-2p/dims), p = 0 .. dims/2 - 1, computed as the original models do, in f32.
  const Tensor& get(Backend& backend, DType type, std::int64_t dims, std::int64_t longest);

 private:
  double base_ = 10000;
  std::int64_t longest_ = 0;  // rows of a new table, at least
  std::map<std::int64_t, Tensor> tables_;
};

class Decoder final : public Model {
 public:
  /// Activations are bf16 where the backend computes in bf16, else of the parameters' type.
  Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, DType type = DType::f32);

  const DecoderConfig& config() const { return config_; }
  const Parameters& parameters() const override { return parameters_; }
  Backend& backend() const { return parameters_.backend(); }

  Loss loss(const Batch& batch) override;
  /// For sequences of at most so many tokens.
  KeyValueCache make_cache(std::span<const std::int32_t> capacities) const;
  /// The residual stream after the final LayerNorm: [tokens, width]. With a cache, extended by the
  /// input's lengths, its tokens are read as well and the input's are stored in it.
  Var features(const Input& input, KeyValueCache* cache = nullptr);
  /// [tokens, classes], of the parameters' type.
  Var logits(const Var& features, std::int64_t head = 0) const;

 private:
  struct Block {
    LayerNorm norm1, norm2;
    Linear projection, out;  // of the attention
    FeedForward feed_forward;
  };
  /// One pass through the blocks: what all of them see alike.
  struct Pass {
    const Input& input;
    KeyValueCache* cache;
    std::int64_t layer = 0;
    std::string name = {};  // of the layer, when somebody watches
  };
  Var run(const Block& block, const Var& x, const Pass& pass);
  Var attend(const Block& block, const Var& x, const Var& residual, const Pass& pass);
  Var turn(Var qkv, const Input& input);
  void show(const std::string& name, const Tensor& x) const {
    if (watch) watch(name, x);
  }

  DecoderConfig config_;
  DType activations_;
  Parameters parameters_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  LayerNorm final_norm_;
  std::vector<Linear> outputs_;
  RopeTables rope_;
};

}  // namespace longhand::nn
