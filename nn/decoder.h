#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/segments.h"
#include "nn/cache.h"
#include "nn/decoder_config.h"
#include "nn/layers.h"
#include "nn/model.h"

namespace longhand::nn {

/// Tables of angles p f_i for any width, grown when a later position is met. What a larger table
/// replaces stays: a recorded step may read it. Sizes double, so it is less than the last.
/// Frequencies f_i = base^(-2i/dims) for all i with 2i < dims, computed as the original models do,
/// in f32.
class PositionTables {
 public:
  PositionTables() = default;
  PositionTables(double base, std::int64_t longest) : base_(base), longest_(longest) {}
  /// Cosines and sines, as rope reads them.
  const Tensor& rotary(Backend& backend, DType type, std::int64_t dims, std::int64_t longest);
  /// Row p: sin p f_0, cos p f_0, sin p f_1, ...
  const Tensor& sinusoidal(Backend& backend, DType type, std::int64_t dims, std::int64_t longest);

 private:
  std::vector<double> frequencies(std::int64_t dims) const;
  std::int64_t rows(std::int64_t longest) const;

  double base_ = 10000;
  std::int64_t longest_ = 0;  // rows of a new table, at least
  std::map<std::int64_t, Tensor> rotary_;
  Tensor sinusoidal_;
  std::vector<Tensor> replaced_;
};

class Decoder final : public Model {
 public:
  /// Activations are bf16 where the backend computes in bf16, else of the parameters' type.
  Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, DType type = DType::f32);

  const DecoderConfig& config() const { return config_; }
  const Parameters& parameters() const override { return parameters_; }
  Backend& backend() const { return parameters_.backend(); }
  DType activations() const { return activations_; }

  void prepare(std::int64_t longest) override;
  using Model::loss;
  Loss loss(const PlacedBatch& batch) override;
  /// For sequences of at most so many tokens. Refused where a token's row depends on what comes
  /// later: tempered by the length.
  KeyValueCache make_cache(std::span<const std::int32_t> capacities) const;
  /// The residual stream after the final LayerNorm: [tokens, width]. With a cache, extended by the
  /// input's lengths, its tokens are read as well and the input's are stored in it.
  Var features(const Input& input, KeyValueCache* cache = nullptr);
  /// [tokens, classes], of the parameters' type.
  Var logits(const Var& features, std::int64_t head = 0) const;
  /// What the heads of a layer share: ChaCAL's gamma, the temper, the window.
  HeadOptions head_options(std::int64_t layer) const;
  /// What training has made of ChaCAL's gammas and the tempers' betas where they are learned:
  /// "gamma 0.3" of layer 0's head 3 (or "gamma 0" of all its heads), "beta 1" of layer 1.
  std::vector<std::pair<std::string, double>> learned_numbers() const;

 private:
  struct Block {
    LayerNorm norm1, norm2;
    Linear projection, out;       // of the attention
    Parameter gamma_logit, beta;  // of its heads, where they are learned
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
  Var embed(const Input& input);
  Var turn(Var qkv, const HeadList& heads, const Input& input);
  /// Entries of each of the group's queries and keys that rope turns, as its frequencies count
  /// them: where that is odd one more is turned, the other half of the last pair.
  std::int64_t turned(const HeadGroup& group) const;
  void show(const std::string& name, const Tensor& x) const {
    if (watch) watch(name, x);
  }

  DecoderConfig config_;
  DType activations_;
  Parameters parameters_;
  Embedding embedding_, positions_;
  std::vector<Block> blocks_;
  LayerNorm final_norm_;
  std::vector<Linear> outputs_;
  Tensor gamma_;  // where it is not learned
  PositionTables tables_;
};

}  // namespace longhand::nn
