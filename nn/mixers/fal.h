#pragma once

#include "nn/mixer_core/attention_heads.h"

namespace longhand::nn {

/// First-After-Last heads (core/contract/fal.h): each token finds the last earlier key whose
/// product with the token's query is positive, and reads the value of the token after this key.
class FalHeads final : public AttentionHeads {
 public:
  bool turned = false;  // apply rotary positions to these heads

  std::unique_ptr<Mixer> clone() const override { return std::make_unique<FalHeads>(*this); }
  std::string_view kind() const override { return "fal"; }
  void declare(Options& options) override;
  HeadsBackward forward(const MixerPass& pass) const override;
  /// The search for keys is not counted, because the number of visited keys depends on the data.
  double operations_of_pair() const override { return 0; }

 protected:
  bool turns() const override { return turned; }
};

}  // namespace longhand::nn
