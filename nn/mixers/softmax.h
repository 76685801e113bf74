#pragma once

#include "nn/mixing/attention_heads.h"
#include "nn/mixing/mixer_list.h"

namespace longhand::nn {

/// Softmax attention (core/contract/attention.h), tempered or not, over all keys or a window.
class SoftmaxHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  std::int64_t window = 0;  // keys that a head sees; 0: all

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<SoftmaxHeads>(*this); }
  std::string_view kind() const override { return "softmax"; }
  void declare(Options& options) override;
  void check_decoding() const override { scores.check_decoding(); }
  void build(MixerScope& layer, const MixerPlace& place) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  std::vector<Var> learned() const override { return {beta_}; }
  std::vector<LearnedNumber> learned_numbers() const override;
  /// Two products forward, five backward, of a pair's queries and keys or values.
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 private:
  Parameter beta_;
};

/// These heads in all layers.
std::vector<MixerList> softmax_layers(const SoftmaxHeads& heads);

}  // namespace longhand::nn
