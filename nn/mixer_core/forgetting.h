#pragma once

#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {

/// The gates of forgetting heads (docs/math/forgetting.md). In each head, a token with the input x
/// has the gate f = sigmoid(w . x + b) in (0, 1), where w and b are trained. The sum of ln f over
/// the tokens j + 1 .. i is added to the score of key j for query i.
struct ForgetGates {
  double bias = 0;  // initial value of the trained bias b of the gates sigmoid(w . x + b)

  void declare(Options& options);
  void build(const Scope& own, std::int64_t heads, std::int64_t width);
  /// Returns Scores::decay: for each key of a pass, the sum of the logarithms of the gates of all
  /// tokens up to this key. In decoding, the logarithms of earlier tokens are read from the cache.
  Var shift(const MixerPass& pass) const;
  std::vector<Var> learned() const { return {weight_, bias_}; }

 private:
  Parameter weight_, bias_;
};

/// Base class of heads that compute attention weights by a rule other than softmax
/// (docs/math/rules.md). Forget gates are optional.
class RuleHeads : public AttentionHeads {
 public:
  bool forgets = false;
  ForgetGates gates;

  void declare(Options& options) override;
  std::int64_t cached_numbers() const override { return forgets ? heads : 0; }
  void build(MixerScope& layer, const MixerPlace& place) override;
  std::vector<Var> learned() const override {
    return forgets ? gates.learned() : std::vector<Var>{};
  }
  double operations_of_pair() const override { return 14 * static_cast<double>(columns()); }

 protected:
  /// Returns the scores q . k / sqrt(width). If the heads have forget gates, each score also
  /// contains the sum of the logarithms of the gates of all tokens after the key, up to the query.
  ScoreVars forgetting_scores(const Operands& operand, const MixerPass& pass) const;
};

}  // namespace longhand::nn
