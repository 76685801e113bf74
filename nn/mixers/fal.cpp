#include "nn/mixers/fal.h"

#include "autograd/fal.h"

namespace longhand::nn {

void FalHeads::declare(Options& options) {
  options.flag("rope_in_fal", turned, "1: rotary positions also apply to FAL heads");
  AttentionHeads::declare(options);
}

HeadsBackward FalHeads::forward(const MixerPass& pass) const {
  const Operands operand = operands(pass);
  const Tensor match(pass.y.backend(), {pass.y.rows(), heads}, DType::i32);
  if (pass.view) pass.view->selected = match;
  return fal_into({.q = operand.q,
                   .k = operand.k,
                   .v = operand.v,
                   .queries = pass.input.segments,
                   .keys = cached_segments(pass)},
                  output(pass), match);
}

extern const MixerKind fal_mixer;
constinit const MixerKind fal_mixer = mixer_kind<FalHeads>("fal");

}  // namespace longhand::nn
