#pragma once

#include "core/contract/attention.h"
#include "core/rules.h"

/// The tensors of all rules under common names, for kernels that serve several rules.
namespace longhand {

struct RuleTensors {
  Rule rule = Rule::softmax;
  Tensor sink = {}, count_bias = {};
  Tensor log_sum = {};   // log_denominator, or threshold of entmax
  Heads root_mean = {};  // entmax only
  Heads residue = {};    // stick-breaking and TRA only
  Heads y = {};          // backward only: y, or root_mean of entmax
  Target dsink = {}, dcount_bias = {};
};

RuleTensors tensors_of(const AttentionRule& rule);
RuleTensors tensors_of(const AttentionGradient& rule);

}  // namespace longhand
