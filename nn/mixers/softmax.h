#pragma once

#include "nn/mixer_core/attention_heads.h"
#include "nn/mixer_core/mixer_list.h"

namespace longhand::nn {

/// Softmax attention (core/contract/attention.h), optionally with tempered scores (Temper) or a
/// window. Reinforced heads add an amount to the weights of listed pairs of tokens, the reference
/// pairs of the input (core/contract/reinforce.h). Reinforcement changes a trained model;
/// reinforced heads cannot be trained.
class SoftmaxHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;  // number of keys that a query sees; 0: all
  /// Reinforced heads increase only attention weights that exceed this threshold. If there is no
  /// value, the heads are not reinforced.
  std::optional<double> reinforce = {};

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
  /// Counts products of vectors of the head's width, with 2 * width operations each. For each pair
  /// and head, these are two products in the forward pass and five in the backward pass.
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }
  /// The amount that each reinforced head adds to the weights of reference pairs, initially 0 and
  /// frozen. Empty if the heads are not reinforced.
  const Parameter& reinforcement() const { return reinforcement_; }

 private:
  Parameter beta_, reinforcement_;
};

/// Returns the value of DecoderConfig::mixers for a model whose layers all have these heads.
std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads);

}  // namespace longhand::nn
