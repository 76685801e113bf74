#pragma once

#include "core/contract/chacal.h"
#include "core/contract/deltaformer.h"
#include "core/contract/fal.h"
#include "core/cpu/attention/work.h"

/// The attention family on the CPU. Math::bf16 rounds the operands of the products to bf16.
/// Math::fast splits each operand into two bf16 parts if the processor has tile registers.
namespace longhand::cpu {

void attention(const Crew& crew, Math math, const Attention& op);
void attention(const Crew& crew, Math math, const AttentionBackward& op);
void attention(const Crew& crew, Math math, const Chacal& op);
void attention(const Crew& crew, Math math, const ChacalBackward& op);
void attention(const Crew& crew, Math math, const DeltaFormer& op);
void attention(const Crew& crew, Math math, const DeltaFormerBackward& op);
void attention(const Crew& crew, const Fal& op);
void attention(const Crew& crew, const FalBackward& op);

}  // namespace longhand::cpu
