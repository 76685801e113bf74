#pragma once

#include "nn/mixing/attention_heads.h"
#include "nn/mixing/mixer_list.h"

namespace longhand::nn {

/// Softmax attention (core/contract/attention.h), tempered or not, over all keys or a window.
/// Reinforced heads give more weight to what a token is to look at, where the input tells them
/// (core/contract/reinforce.h). That is an intervention in a trained model: they are not trained.
class SoftmaxHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;               // keys that a head sees; 0: all
  std::optional<double> reinforce = {};  // the threshold C of reinforced heads

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<SoftmaxHeads>(*this); }
  std::string_view kind() const override { return "softmax"; }
  void declare(Options& options) override;
  void check_decoding() const override { scores.check_decoding(); }
  bool wants_reference() const override { return reinforce.has_value(); }
  void build(MixerScope& layer, const MixerPlace& place) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  std::vector<Var> learned() const override { return {beta_}; }
  std::vector<Parameter> added() const override;
  std::vector<LearnedNumber> learned_numbers() const override;
  /// Two products forward, five backward, of a pair's queries and keys or values.
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }
  /// Of reinforced heads: what is added to the weights of each, at first 0; frozen. Or empty.
  const Parameter& reinforcement() const { return reinforcement_; }

 private:
  Parameter beta_, reinforcement_;
};

/// These heads in all layers.
std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads);

}  // namespace longhand::nn
