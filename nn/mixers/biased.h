#pragma once

#include "nn/mixers/softmax.h"

namespace longhand::nn {

/// The form of the bias that is added to the scores of softmax heads.
enum class ScoreBias {
  matrix,  // one trained number for each head, query position and key position
  /// the attention weights of additional heads, which read the same input as the biased heads
  heads,
};
template <>
inline constexpr std::array<std::string_view, 2> names_of<ScoreBias>{"matrix", "heads"};

/// Softmax heads with a trainable bias that is added to their scores (docs/math/biased.md). All
/// other parameters of the model are frozen. Apart from the bias, the heads have the parameters of
/// SoftmaxHeads, so trained softmax heads can be loaded. The initial bias does not change the
/// output of the heads.
///
/// The computation is not fused: all scores of one sequence, for all heads of a layer, are in
/// memory at once.
class BiasedHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;  // number of keys that a query sees; 0: all
  ScoreBias bias = ScoreBias::heads;
  std::int64_t longest = 256;  // maximum number of tokens with ScoreBias::matrix

  BiasedHeads() = default;
  explicit BiasedHeads(const SoftmaxHeads& heads);

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<BiasedHeads>(*this); }
  std::string_view kind() const override { return "biased"; }
  void declare(Options& options) override;
  void check_decoding() const override { scores.check_decoding(); }
  std::int64_t cached_columns() const override;
  std::optional<std::int64_t> most_tokens() const override;
  /// Training steps cannot be recorded as CUDA graphs, because their operations depend on the
  /// lengths of the sequences and not only on the shapes of the tensors.
  bool repeats() const override { return false; }
  void build(MixerScope& layer, const MixerPlace& place) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  std::vector<Var> learned() const override { return {beta_, matrix_, query_, key_}; }
  std::vector<Parameter> added() const override;
  std::vector<LearnedNumber> learned_numbers() const override;
  double operations_of_pair() const override;

 private:
  /// Only for ScoreBias::heads, where each biased head has a second head whose attention weights
  /// are the bias. Returns the scores of these second heads. In decoding, the keys of earlier
  /// tokens are read from the cache.
  ScoreVars further_scores(const MixerPass& pass) const;

  Parameter beta_;
  /// The bias of ScoreBias::matrix, [heads, longest, longest]; otherwise empty.
  Parameter matrix_;
  /// The matrices that compute the queries and keys of the additional heads of ScoreBias::heads;
  /// otherwise empty. Their shape is [heads * width, width of the residual stream].
  Parameter query_, key_;
};

}  // namespace longhand::nn
