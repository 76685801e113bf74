#pragma once

#include "nn/mixers/softmax.h"

namespace longhand::nn {

/// What is added to the scores of softmax heads.
enum class ScoreBias {
  matrix,  // a number for each head, query's position and key's position
  heads,   // the weights of further heads of the same layer, which read the stream themselves
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<ScoreBias>{"matrix", "heads"};

/// Softmax heads with a trainable bias added to their scores (docs/math/biased.md), for a model
/// that is frozen otherwise. Columns and parameters are those of SoftmaxHeads, so that its weights
/// are theirs; with the bias as it is at first they do what these do.
///
/// Nothing here is fused: sequence by sequence, every score of a layer's heads is in memory.
class BiasedHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;  // keys that a head sees; 0: all
  ScoreBias bias = ScoreBias::heads;
  std::int64_t longest = 256;  // rows and columns of a matrix

  BiasedHeads() = default;
  explicit BiasedHeads(const SoftmaxHeads& heads);

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<BiasedHeads>(*this); }
  std::string_view kind() const override { return "biased"; }
  void declare(Options& options) override;
  void check_decoding() const override { scores.check_decoding(); }
  std::int64_t cached_columns() const override;
  std::optional<std::int64_t> most_tokens() const override;
  /// Sequences of other lengths in tensors of the same shapes are other operations.
  bool repeats() const override { return false; }
  void build(MixerScope& layer, const MixerPlace& place) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  std::vector<Var> learned() const override { return {beta_, matrix_, query_, key_}; }
  std::vector<Parameter> added() const override;
  std::vector<LearnedNumber> learned_numbers() const override;
  double operations_of_pair() const override;

 private:
  /// The further heads' scores; keys of earlier tokens come from the cache.
  ScoreVars further_scores(const MixerPass& pass) const;

  Parameter beta_;
  Parameter matrix_;       // [heads, longest, longest]; or empty
  Parameter query_, key_;  // [heads * width, width of the stream]; or empty
};

}  // namespace longhand::nn
