#pragma once

#include "core/rules.h"
#include "nn/mixing/attention_heads.h"

namespace longhand::nn {

/// The gates of heads that forget (docs/math/forgetting.md): token t has f_t = sigmoid(w . x_t + b)
/// in (0, 1) for each head, and the sum of ln f over j + 1 .. i is added to the score of key j for
/// query i.
struct ForgetGates {
  double bias = 0;  // initial b

  void declare(Options& options);
  void build(const Scope& own, std::int64_t heads, std::int64_t width);
  /// c of the keys of a pass; the cache stores their ln f.
  Var shift(const MixerPass& pass) const;
  std::vector<Var> learned() const { return {weight_, bias_}; }

 private:
  Parameter weight_, bias_;
};

/// Heads with another rule than softmax (docs/math/rules.md), which may also forget.
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
  explicit RuleHeads(Rule rule) : rule_(rule) {}
  /// Scores for the rule, which a mixer can modify.
  ScoreVars ruled_scores(const Operands& operand, const MixerPass& pass) const;

 private:
  Rule rule_;
};

}  // namespace longhand::nn
