#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "nn/layers/dropout.h"
#include "nn/layers/embedding.h"
#include "nn/layers/feed_forward.h"
#include "nn/layers/sinusoids.h"
#include "nn/mixer_core/mixing.h"
#include "nn/model.h"
#include "nn/models/cache.h"
#include "nn/models/decoder_config.h"

namespace longhand::nn {

class Decoder final : public Model {
 public:
  /// A block and its layers. DecoderConfig determines how they are connected. Either `feed_forward`
  /// or `gated` is used.
  struct Block {
    Norm norm1, norm2;              // norm1 is before mixing, norm2 before the feed forward
    Norm norm1_after, norm2_after;  // after mixing, and after the feed forward; may be empty
    Mixing mixing;
    FeedForward feed_forward;
    GatedFeedForward gated;
    Dropout mixing_dropout, feed_forward_dropout;  // empty if the dropout rate is 0

    /// The mixer at index `place` of the block. Throws an Error if it is not of class M.
    template <class M>
    const M& mixer(std::size_t place = 0) const {
      LONGHAND_CHECK(place < mixing.mixers().size(), "model: expected a mixer index from 0 to ",
                     mixing.mixers().size() - 1, ", got ", place);
      const auto* const found = dynamic_cast<const M*>(&*mixing.mixers()[place]);
      LONGHAND_CHECK(found, "model: expected a mixer of the requested class at index ", place,
                     ", got a mixer of kind ", mixing.mixers()[place]->kind());
      return *found;
    }
  };

  /// Activations are bf16 if the backend computes in bf16; otherwise they have the type of the
  /// parameters.
  Decoder(Backend& backend, DecoderConfig config, std::uint64_t seed, Storage storage = {});

  /// If true, training stores only the input of each block and recomputes the block's other
  /// activations in the backward pass. This saves memory, needs about a third more computation and
  /// does not change the results.
  bool recompute = false;

  const DecoderConfig& config() const { return config_; }
  /// True if the output depends on Input::reference, a list of pairs of tokens of which the first
  /// should attend to the second.
  bool wants_reference() const { return nn::wants_reference(config_); }
  DType activations() const { return activations_; }

  const Embedding& embedding() const { return embedding_; }
  const Embedding& positions() const { return positions_; }  // learned positions; may be empty
  const Block& block(std::int64_t layer) const { return blocks_[static_cast<std::size_t>(layer)]; }
  const Norm& final_norm() const { return final_norm_; }
  /// The output layer with index `head`. If embeddings are tied, its weight is the embedding's
  /// weight.
  const Linear& output(std::int64_t head = 0) const;
  std::int64_t outputs() const { return static_cast<std::int64_t>(outputs_.size()); }

  /// A low-rank product (LoRA), and the matrix to which it is added.
  struct Adapter {
    Parameter weight;
    Lora lora;
  };
  std::vector<Adapter> adapters() const;
  /// Adds each low-rank product to its matrix, then removes all low-rank products.
  void merge_adapters();

  void prepare(std::int64_t longest) override;
  Loss loss(const PlacedBatch& batch) override;
  bool repeats() const override;
  /// A cache for sequences of at most capacities[i] tokens. Throws an Error if a token's output
  /// depends on later tokens, for example with Temper::length.
  KeyValueCache make_cache(std::span<const std::int32_t> capacities) const;
  /// The residual stream after the final norm, [tokens, width]. If there is a cache, the tokens
  /// also attend to the cached tokens and are added to the cache. Before the call, the caller must
  /// call cache->extend() with the lengths of the input's sequences.
  Var features(const Input& input, KeyValueCache* cache = nullptr);
  /// Logits, [tokens, classes], of the type of the parameters.
  Var logits(const Var& features, std::int64_t head = 0) const;
  /// Returns one view per layer and mixer. The view contains the mixer's attention weights for
  /// these tokens, or the keys that the mixer's heads selected.
  std::vector<std::vector<MixerView>> look(const Input& input);
  /// The trained numbers of all mixers, with their names: "gamma 0.3" is gamma of head 3 in layer
  /// 0, and "gamma 0" is the gamma that all heads of layer 0 share.
  std::vector<std::pair<std::string, double>> learned_numbers() const;

 private:
  using Views = std::vector<std::vector<MixerView>>;
  /// The state of a pass, shared by all blocks.
  struct Pass {
    const Input& input;
    KeyValueCache* cache = nullptr;
    Views* views = nullptr;
    std::int64_t layer = 0;
    std::string name = {};  // prefix of activation names in this block; empty without an observer
  };
  Block make_block(const Scope& scope, std::int64_t layer) const;
  void add_adapters(Block& block, const Scope& scope) const;
  Var run(Pass& pass);
  Var run_again_in_backward(const Block& block, const Var& x, const Pass& pass);
  Var run(const Block& block, const Var& x, const Pass& pass);
  Var mix(const Block& block, const Var& x, const Var& residual, const Pass& pass);
  Var feed(const Block& block, const Var& x, const Var& residual) const;
  Var embed(const Input& input);
  void show(const std::string& name, const Tensor& x) const {
    if (watch) watch(name, x);
  }

  DecoderConfig config_;
  DType activations_;
  Embedding embedding_, positions_;
  Dropout embedding_dropout_;
  std::vector<Block> blocks_;
  Norm final_norm_;
  std::vector<Linear> outputs_;
  RopeTables turns_;
  Sinusoids sinusoids_;
};

}  // namespace longhand::nn
