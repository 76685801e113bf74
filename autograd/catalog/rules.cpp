#include "autograd/catalog/rules.h"

#include <cmath>

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

/// A case for one attention rule, with the input that only this rule has, such as `pull` of
/// threshold relative attention. If `tau` or `shift` is set, the case also has the input of that
/// name. A query sees at most the last `window` keys, or all keys if `window` is 0.
Case ruled(Rng& rng, const HeadShape& shape, const DescribedRule& rule, bool tau = false,
           const char* window = "0", bool shift = false) {
  Case c = head_case(rng, shape);
  if (tau) c = scored(rng, std::move(c), {"tau"});
  if (rule.by_sign) c = decided(rng, std::move(c), shape, 0.6);
  if (rule.input) c = scored(rng, std::move(c), {rule.input->name});
  if (shift) c = scored(rng, std::move(c), {"shift"});
  if (shift && rule.by_sign) {
    // The shifts are so small that they change the sign of no score.
    for (double& x : c.inputs.at("shift").values) x *= 0.25;
  }
  c.attributes["window"] = window;
  return c;
}

std::vector<Case> cases_of(Rng& rng, const DescribedRule& rule,
                           const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) cases.push_back(ruled(rng, shape, rule));
  return cases;
}

std::vector<Case> small_cases(Rng& rng, const DescribedRule& rule) {
  std::vector<Case> cases = cases_of(rng, rule, small_heads());
  for (const std::size_t shape : {1u, 2u, 6u}) {
    const HeadShape s = small_heads()[shape];
    cases.push_back(ruled(rng, s, rule, true));
    cases.push_back(ruled(rng, s, rule, false, "1"));
    cases.push_back(ruled(rng, s, rule, true, "3"));
    cases.back().attributes["scale"] = "-0.8";
  }
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(ruled(rng, shape, rule));
    cases.push_back(ruled(rng, shape, rule, true));
  }
  for (const std::size_t shape : {1u, 2u, 6u}) {
    cases.push_back(ruled(rng, small_heads()[shape], rule, false, "0", true));
    cases.push_back(ruled(rng, small_heads()[shape], rule, true, "3", true));
    cases.push_back(
        gated(rng, ruled(rng, small_heads()[shape], rule), rule.by_sign ? 0.97 : 0.3, 0.99));
  }
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(ruled(rng, shape, rule, true, "0", true));
  }
  return cases;
}

std::vector<Case> medium_cases(Rng& rng, const DescribedRule& rule) {
  std::vector<Case> cases = cases_of(rng, rule, medium_heads());
  for (const HeadShape& shape : medium_heads()) {
    cases.push_back(ruled(rng, shape, rule, true));
    cases.push_back(ruled(rng, shape, rule, false, "0", true));
    cases.push_back(gated(rng, ruled(rng, shape, rule), rule.by_sign ? 0.98 : 0.45,
                          rule.by_sign ? 0.99 : 0.55));
  }
  if (!rule.by_sign) cases.push_back(balanced(rng));
  return cases;
}

/// Cases with long sequences. Some have forget gates near 1/2, some have forget gates near 1, some
/// have scores up to 60, and some have none of these. Under rules that ignore keys with negative
/// scores, all forget gates are near 1. Smaller gates would bring scores near 0, where rounding
/// changes their sign.
std::vector<Case> long_cases(Rng& rng, const DescribedRule& rule) {
  std::vector<Case> cases = cases_of(rng, rule, long_heads());
  for (const HeadShape& shape : long_heads()) {
    cases.push_back(gated(rng, ruled(rng, shape, rule), rule.by_sign ? 0.998 : 0.45,
                          rule.by_sign ? 0.999 : 0.55));
    cases.push_back(
        gated(rng, ruled(rng, shape, rule, !rule.by_sign), rule.by_sign ? 0.999 : 0.97, 1));
    cases.push_back(ruled(rng, shape, rule));
    cases.back().attributes["scale"] = shape.heads > 1 ? "-5" : "5";
  }
  if (!rule.by_sign) cases.push_back(narrow(rng, ruled(rng, longest_head(), rule)));
  return cases;
}

std::vector<Case> large_cases(Rng& rng, const DescribedRule& rule) {
  std::vector<Case> cases = medium_cases(rng, rule);
  for (Case& c : cases_of(rng, rule, large_heads())) cases.push_back(std::move(c));
  for (const char* keys_back : {"40", "65"}) {
    cases.push_back(ruled(rng, large_heads()[0], rule, true, keys_back));
    cases.push_back(ruled(rng, large_heads()[0], rule, true, keys_back, true));
  }
  for (const HeadShape& shape : large_heads()) {
    cases.push_back(ruled(rng, shape, rule, false, "0", true));
  }
  // These cases detect a kernel that omits a block of keys. They have 300 keys, which the CPU's
  // backward pass with vector instructions processes in two parts. With the scale 0.01, all scores
  // are nearly 0, so most rules spread the weight over all keys. Stick-breaking, however, assigns
  // nearly all weight to the nearest keys if scores are 0. It spreads the weight in the case with
  // the scale 1, in which all scores are negative.
  const HeadShape many{.lengths = {300}, .width = 8, .v_width = 8};
  cases.push_back(ruled(rng, many, rule));
  cases.back().attributes["scale"] = "0.01";
  if (!rule.by_sign) {
    cases.push_back(ruled(rng, many, rule));
    cases.back().attributes["scale"] = "1";
    for (double& x : cases.back().inputs.at("q").values) x = std::abs(x);
    for (double& x : cases.back().inputs.at("k").values) x = -std::abs(x);
  }
  for (Case& c : long_cases(rng, rule)) cases.push_back(std::move(c));
  return cases;
}

std::vector<Argument> arguments(const DescribedRule& rule) {
  std::vector<Argument> more{
      {"tau", "[tokens, heads]: factors of scores", Role::master, true, true},
      {"shift", "[key tokens, heads]: c of c_i - c_j", Role::master, true, true},
      gates_argument()};
  if (rule.input) more.push_back(*rule.input);
  return more;
}

Operation fused_or_composed(const DescribedRule& rule, bool fused) {
  return {
      .name = (fused ? "" : "composed_") + rule.name + "_attention",
      .page = "rules",
      .formula = rule.formula,
      .inputs = head_inputs(arguments(rule)),
      .attributes = head_attributes(windowed_attributes()),
      .outputs = {"y"},
      .run = [fused, rule](const Call& c) -> std::vector<Output> {
        const ScoreVars s = windowed_call(c);
        const HeadVars v = value_call(c, s);
        const RuleVars by = rule.vars(c);
        return {{"y", fused ? attention(s, v, by) : composed_attention(s, v, by)}};
      },
      .cases = [rule](Rng& rng) { return small_cases(rng, rule); },
      .products = true,
      .large = [rule, fused](
                   Rng& rng) { return fused ? large_cases(rng, rule) : medium_cases(rng, rule); },
      .error_terms = fused ? rule.error_terms : 1.0,
      .of_length =
          [rule](Rng& rng, std::int64_t tokens, double gate) {
            Case c = ruled(rng, of_tokens(tokens), rule, !rule.by_sign);
            return gate > 0 ? gated(rng, std::move(c), gate, gate) : c;
          }};
}

Operation weights(const DescribedRule& rule) {
  return {
      .name = rule.name + "_weights",
      .page = "rules",
      .formula = "P of " + rule.name + ", sequence after sequence, in each [heads, queries, keys]",
      .inputs = head_inputs(arguments(rule), false),
      .attributes = head_attributes(windowed_attributes(), false),
      .outputs = {"weights"},
      .run = [rule](const Call& c) -> std::vector<Output> {
        return {{"weights", attention_weights(windowed_call(c), rule.vars(c))}};
      },
      .cases =
          [rule](Rng& rng) {
            std::vector<Case> cases = small_cases(rng, rule);
            for (Case& c : cases) c = without_values(std::move(c));
            return cases;
          },
      .products = !rule.by_sign,
      .always_f32 = rule.by_sign,
      .large = rule.by_sign ? std::function<std::vector<Case>(Rng&)>() : balanced_weights};
}

}  // namespace

std::vector<Operation> rule_operations(const DescribedRule& rule) {
  return {fused_or_composed(rule, true), fused_or_composed(rule, false), weights(rule)};
}

}  // namespace longhand::catalog
