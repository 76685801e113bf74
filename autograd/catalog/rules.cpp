#include "core/rules.h"
#include "autograd/attention.h"
#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

/// Attention with the rules of core/rules.h other than softmax.
namespace longhand::catalog {
namespace {

struct Described {
  Rule rule;
  std::string formula;
};

/// A case with the rule's own arguments and, as required, tau, shift and a window.
Case ruled(Rng& rng, const HeadShape& shape, Rule rule, bool tau = false, const char* window = "0",
           bool shift = false) {
  Case c = head_case(rng, shape);
  if (tau) c = scored(rng, std::move(c), {"tau"});
  if (rule == Rule::tra) c = scored(rng, decided(rng, std::move(c), shape, 0.6), {"pull"});
  if (shift) c = scored(rng, std::move(c), {"shift"});
  if (shift && rule == Rule::tra) {
    // The shifts are so small that they change the sign of no score.
    for (double& x : c.inputs.at("shift").values) x *= 0.25;
  }
  c.attributes["window"] = window;
  return c;
}

std::vector<Case> cases_of(Rng& rng, Rule rule, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) cases.push_back(ruled(rng, shape, rule));
  return cases;
}

std::vector<Case> small_cases(Rng& rng, Rule rule) {
  std::vector<Case> cases = cases_of(rng, rule, small_heads());
  for (const std::size_t shape : {1u, 2u, 6u}) {
    const HeadShape s = small_heads()[shape];
    cases.push_back(ruled(rng, s, rule, true));
    cases.push_back(ruled(rng, s, rule, false, "1"));
    cases.push_back(ruled(rng, s, rule, true, "3"));
    cases.back().attributes["scale"] = "0.8";
  }
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(ruled(rng, shape, rule));
    cases.push_back(ruled(rng, shape, rule, true));
  }
  for (const std::size_t shape : {1u, 2u, 6u}) {
    cases.push_back(ruled(rng, small_heads()[shape], rule, false, "0", true));
    cases.push_back(ruled(rng, small_heads()[shape], rule, true, "3", true));
    const bool tra = rule == Rule::tra;
    cases.push_back(gated(rng, ruled(rng, small_heads()[shape], rule), tra ? 0.97 : 0.3, 0.99));
  }
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(ruled(rng, shape, rule, true, "0", true));
  }
  return cases;
}

std::vector<Case> medium_cases(Rng& rng, Rule rule) {
  std::vector<Case> cases = cases_of(rng, rule, medium_heads());
  for (const HeadShape& shape : medium_heads()) {
    cases.push_back(ruled(rng, shape, rule, true));
    cases.push_back(ruled(rng, shape, rule, false, "0", true));
    const bool tra = rule == Rule::tra;
    cases.push_back(gated(rng, ruled(rng, shape, rule), tra ? 0.98 : 0.45, tra ? 0.99 : 0.55));
  }
  if (rule != Rule::tra) cases.push_back(balanced(rng));
  return cases;
}

/// Long sequences: with normal scores, with gates near 1/2, with gates near 1, and with scores up
/// to 60. For TRA all gates are near 1: stronger gates would bring scores near 0, where rounding
/// changes their sign.
std::vector<Case> long_cases(Rng& rng, Rule rule) {
  std::vector<Case> cases = cases_of(rng, rule, long_heads());
  for (const HeadShape& shape : long_heads()) {
    const bool tra = rule == Rule::tra;
    cases.push_back(gated(rng, ruled(rng, shape, rule), tra ? 0.998 : 0.45, tra ? 0.999 : 0.55));
    cases.push_back(gated(rng, ruled(rng, shape, rule, !tra), tra ? 0.999 : 0.97, 1));
    cases.push_back(ruled(rng, shape, rule));
    cases.back().attributes["scale"] = "5";
  }
  if (rule != Rule::tra) cases.push_back(narrow(rng, ruled(rng, longest_head(), rule)));
  return cases;
}

std::vector<Case> large_cases(Rng& rng, Rule rule) {
  std::vector<Case> cases = medium_cases(rng, rule);
  for (Case& c : cases_of(rng, rule, large_heads())) cases.push_back(std::move(c));
  for (const char* keys_back : {"40", "65"}) {
    cases.push_back(ruled(rng, large_heads()[0], rule, true, keys_back));
    cases.push_back(ruled(rng, large_heads()[0], rule, true, keys_back, true));
  }
  for (const HeadShape& shape : large_heads()) {
    cases.push_back(ruled(rng, shape, rule, false, "0", true));
  }
  // Each key receives a small part of the weight, so the kernels do not stop within the first
  // block. The sequence has several ranges of keys.
  cases.push_back(ruled(rng, {.lengths = {300}, .width = 8, .v_width = 8}, rule));
  cases.back().attributes["scale"] = "0.01";
  for (Case& c : long_cases(rng, rule)) cases.push_back(std::move(c));
  return cases;
}

RuleVars rule_of(const Call& c, Rule rule) {
  if (rule == Rule::stick) return StickBreakingVars{};
  if (rule == Rule::tra) return TraVars{c.in("pull")};
  return EntmaxVars{};
}

std::vector<Argument> arguments(Rule rule) {
  std::vector<Argument> more{
      {"tau", "[tokens, heads]: factors of scores", Role::master, true, true},
      {"shift", "[key tokens, heads]: c of c_i - c_j", Role::master, true, true},
      gates_argument()};
  if (rule == Rule::tra) {
    more.push_back({"pull", "[tokens, heads]: added for each positive key", Role::master});
  }
  return more;
}

Operation fused_or_composed(const Described& d, bool fused) {
  const Rule rule = d.rule;
  return {
      .name = (fused ? "" : "composed_") + std::string(name_of(rule)) + "_attention",
      .page = "rules",
      .formula = d.formula,
      .inputs = head_inputs(arguments(rule)),
      .attributes = head_attributes(windowed_attributes()),
      .outputs = {"y"},
      .run = [fused, rule](const Call& c) -> std::vector<Output> {
        const ScoreVars s = windowed_call(c);
        const HeadVars v = value_call(c, s);
        const RuleVars by = rule_of(c, rule);
        return {{"y", fused ? attention(s, v, by) : composed_attention(s, v, by)}};
      },
      .cases = [rule](Rng& rng) { return small_cases(rng, rule); },
      .products = true,
      .large = [rule, fused](
                   Rng& rng) { return fused ? large_cases(rng, rule) : medium_cases(rng, rule); },
      // dS of each key contains sigmoid(s) times the rounding error of D. A row ends when less than
      // 2^-30 of its weight is left, so sigmoid(s) sums to at most about 30 ln 2 = 20.8 in a row.
      .error_terms = fused&& rule == Rule::stick ? 21.0 : 1.0,
      .of_length =
          [rule](Rng& rng, std::int64_t tokens, double gate) {
            Case c = ruled(rng, of_tokens(tokens), rule, rule != Rule::tra);
            return gate > 0 ? gated(rng, std::move(c), gate, gate) : c;
          }};
}

Operation weights(const Described& d) {
  const Rule rule = d.rule;
  return {.name = std::string(name_of(rule)) + "_weights",
          .page = "rules",
          .formula = "P of " + std::string(name_of(rule)) +
                     ", sequence after sequence, in each [heads, queries, keys]",
          .inputs = head_inputs(arguments(rule), false),
          .attributes = head_attributes(windowed_attributes(), false),
          .outputs = {"weights"},
          .run = [rule](const Call& c) -> std::vector<Output> {
            return {{"weights", attention_weights(windowed_call(c), rule_of(c, rule))}};
          },
          .cases =
              [rule](Rng& rng) {
                std::vector<Case> cases = small_cases(rng, rule);
                for (Case& c : cases) c = without_values(std::move(c));
                return cases;
              },
          .products = rule != Rule::tra,
          .always_f32 = rule == Rule::tra,
          .large = rule == Rule::tra ? std::function<std::vector<Case>(Rng&)>() : balanced_weights};
}

std::vector<Operation> rule_operations() {
  std::vector<Operation> all;
  for (const Described& d :
       {Described{
            Rule::stick,
            "y_i = sum_(j<i) P_ij v_j, P_ij = sigmoid(s_ij) prod_(j<m<i) (1 - sigmoid(s_im)), "
            "s_ij = tau_i scale q_i . k_j + c_i - c_j"},
        Described{Rule::tra,
                  "y_i = sum_j P_ij v_j, P = softmax over the j <= i with s_ij > 0, n_ij of them "
                  "from j to i, of s_ij + pull_i n_ij"},
        Described{Rule::entmax,
                  "y_i = sum_j P_ij v_j, P_ij = [s_ij / 2 - t_i]_+^2 over j <= i, t_i such that a "
                  "row sums to 1"}}) {
    all.push_back(fused_or_composed(d, true));
    all.push_back(fused_or_composed(d, false));
    all.push_back(weights(d));
  }
  return all;
}

}  // namespace

extern const Family rules_family;
constinit const Family rules_family{rule_operations};

}  // namespace longhand::catalog
