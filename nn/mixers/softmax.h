#pragma once

#include "nn/mixing/attention_heads.h"
#include "nn/mixing/mixer_list.h"

namespace longhand::nn {

/// Softmax attention (core/contract/attention.h), optionally tempered or with a window. In
/// reinforced heads, an amount is added to the weights of the tokens named by the input's reference
/// pairs (core/contract/reinforce.h). This changes a trained model; reinforced heads cannot be
/// trained.
class SoftmaxHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;               // number of keys that a query sees; 0: all
  std::optional<double> reinforce = {};  // threshold C, if the heads are reinforced

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
  /// Counts two products per pair in the forward pass and five in the backward pass.
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }
  /// The amount that each reinforced head adds to weights, initially 0; frozen. May be empty.
  const Parameter& reinforcement() const { return reinforcement_; }

 private:
  Parameter beta_, reinforcement_;
};

/// The mixers of a configuration that has these heads in every layer.
std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads);

}  // namespace longhand::nn
