#pragma once

#include "core/contract/chain.h"
#include "core/contract/fal.h"
#include "core/cpu/attention/work.h"

/// The attention family on the CPU. Math::bf16 rounds the operands of the products,
/// Math::fast splits them in two bf16 parts where there are tile registers.
namespace longhand::cpu {

void attention(const Crew& crew, Math math, const Attention& op);
void attention(const Crew& crew, Math math, const AttentionBackward& op);
void attention(const Crew& crew, Math math, const Chain& op);
void attention(const Crew& crew, Math math, const ChainBackward& op);
void attention(const Crew& crew, const Fal& op);
void attention(const Crew& crew, const FalBackward& op);

}  // namespace longhand::cpu
