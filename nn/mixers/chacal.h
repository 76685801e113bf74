#pragma once

#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {

/// How ChaCAL heads determine gamma, the weight of an earlier token's output, which is mixed with
/// the token's value. `no`: a constant; `layer`: one learned number per layer; `head`: one learned
/// number per head.
enum class Learned { no, layer, head };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Learned>{"no", "layer", "head"};

/// ChaCAL heads (core/contract/chacal.h): softmax attention that reads (1 - gamma) v_j + gamma y_j
/// instead of the value v_j of an earlier token j. y_j is the output of the head at token j.
class ChacalHeads final : public AttentionHeads {
 public:
  ScoreOptions scores;
  double gamma = 0.9;  // gamma, or its initial value if it is learned
  /// Selects a constant or a learned gamma. A learned gamma is the sigmoid of a parameter.
  Learned learned_gamma = Learned::no;

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<ChacalHeads>(*this); }
  std::string_view kind() const override { return "chacal"; }
  void declare(Options& options) override;
  void check() const override;
  bool caches_outputs() const override { return true; }
  void check_decoding() const override { scores.check_decoding(); }
  void build(MixerScope& layer, const MixerPlace& place) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  std::vector<Var> learned() const override { return {beta_, logit_}; }
  std::vector<LearnedNumber> learned_numbers() const override;
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 private:
  Var gammas() const;  // gamma of all heads, [1], or of each head, [heads]

  Parameter beta_, logit_;
  Tensor fixed_gamma_;  // the value of gamma if it is not learned
};

}  // namespace longhand::nn
