#include "core/rule_tensors.h"

namespace longhand {
namespace {

RuleTensors of(const SoftmaxRule& r) {
  return {.rule = Rule::softmax, .sink = r.sink, .log_sum = r.log_denominator};
}
RuleTensors of(const StickBreakingRule& r) { return {.rule = Rule::stick, .residue = r.residue}; }
RuleTensors of(const TraRule& r) {
  return {.rule = Rule::tra,
          .count_bias = r.count_bias,
          .log_sum = r.log_denominator,
          .residue = r.residue};
}
RuleTensors of(const EntmaxRule& r) {
  return {.rule = Rule::entmax, .log_sum = r.threshold, .root_mean = r.root_mean};
}

RuleTensors of(const SoftmaxGradient& r) {
  return {.rule = Rule::softmax,
          .sink = r.sink,
          .log_sum = r.log_denominator,
          .y = r.y,
          .dsink = r.dsink};
}
RuleTensors of(const StickBreakingGradient& r) {
  return {.rule = Rule::stick, .residue = r.residue, .y = r.y};
}
RuleTensors of(const TraGradient& r) {
  return {.rule = Rule::tra,
          .count_bias = r.count_bias,
          .log_sum = r.log_denominator,
          .residue = r.residue,
          .y = r.y,
          .dcount_bias = r.dcount_bias};
}
RuleTensors of(const EntmaxGradient& r) {
  return {.rule = Rule::entmax, .log_sum = r.threshold, .y = r.root_mean};
}

}  // namespace

RuleTensors tensors_of(const AttentionRule& rule) {
  return std::visit([](const auto& r) { return of(r); }, rule);
}
RuleTensors tensors_of(const AttentionGradient& rule) {
  return std::visit([](const auto& r) { return of(r); }, rule);
}

}  // namespace longhand
