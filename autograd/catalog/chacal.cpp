#include "autograd/chacal.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

/// A case for ChaCAL. `gamma`, the weight of earlier outputs, has the shape [1] or [heads].
Case chacal_case(Rng& rng, const HeadShape& shape, const HostTensor& gamma) {
  Case c = head_case(rng, shape);
  c.inputs["gamma"] = gamma;
  return c;
}

std::vector<Case> varied(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    for (const double gamma : {0.0, 0.9}) {
      cases.push_back(chacal_case(rng, shape, constant({1}, gamma)));
    }
    cases.push_back(head_case(rng, shape));
    cases.back().inputs["gamma"] = uniforms(rng, {shape.heads}, 0.1, 0.99);
  }
  cases.push_back(chacal_case(rng, shapes[2], constant({1}, 0.8)));
  cases.push_back(chacal_case(rng, shapes[1], constant({1}, 1.0)));
  cases.back().attributes["scale"] = "-0.4";
  return cases;
}

/// Adds three cases: one with the input `tau`, one with `shift` and one with `sink`.
void add_scored(std::vector<Case>& cases, Rng& rng, const HeadShape& shape) {
  for (const char* const name : {"tau", "shift", "sink"}) {
    cases.push_back(scored(rng, head_case(rng, shape), {name}));
    cases.back().inputs["gamma"] = constant({1}, 0.8);
  }
}

std::vector<Case> small_cases(Rng& rng) {
  std::vector<Case> cases = varied(rng, small_heads());
  add_scored(cases, rng, small_heads()[2]);
  return cases;
}
/// In ChaCAL, each head multiplies earlier outputs by one number, gamma. The gradient of gamma is
/// also one number per head, so one case contains little information about rounding errors.
/// Therefore there are 16 further cases. Their gammas are small, because ChaCAL multiplies rounding
/// errors by up to 1 / (1 - gamma).
std::vector<Case> medium_cases(Rng& rng) {
  std::vector<Case> cases = varied(rng, medium_heads());
  const HeadShape four{.lengths = {12, 20}, .heads = 4, .key_heads = 2, .width = 8, .v_width = 8};
  for (int i = 0; i < 16; ++i) {
    cases.push_back(head_case(rng, four));
    cases.back().inputs["gamma"] = uniforms(rng, {four.heads}, 0.1, 0.6);
  }
  add_scored(cases, rng, medium_heads()[1]);
  return cases;
}
std::vector<Case> large_cases(Rng& rng) {
  std::vector<Case> cases = medium_cases(rng);
  for (Case& c : varied(rng, large_heads())) cases.push_back(std::move(c));
  return cases;
}
std::vector<Case> continued_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const HeadShape& shape : decoding_heads()) {
    const Case plain = head_case(rng, shape);
    for (const Case& c : {plain, scored(rng, plain, {"tau", "shift", "sink"})}) {
      cases.push_back(c);
      cases.back().inputs["gamma"] = constant({1}, 0.9);
      cases.back().inputs["earlier"] =
          normals(rng, {total(shape.key_lengths), shape.heads * shape.v_width});
    }
  }
  return cases;
}

std::vector<Argument> inputs(std::vector<Argument> more = {}) {
  more.insert(more.begin(), {"gamma", "[1] or [heads]", Role::master});
  return head_inputs(score_arguments(std::move(more)));
}

Operation fused_or_composed(bool fused) {
  return {.name = fused ? "chacal" : "composed_chacal",
          .page = "chacal",
          .formula = "Y = (1 - gamma) (I - gamma P-)^-1 P V, P- the strictly lower part of P",
          .inputs = inputs(),
          .attributes = head_attributes(score_attributes()),
          .outputs = {"y"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = score_call(c);
            const HeadVars v = value_call(c, s);
            const Var gamma = c.in("gamma"), sink = softmax_call(c).sink;
            return {{"y", fused ? chacal(s, v, gamma, {}, sink)
                                : composed_chacal(s, v, gamma, {}, sink)}};
          },
          .cases = small_cases,
          .products = true,
          .large = fused ? large_cases : medium_cases,
          .of_length =
              [](Rng& rng, std::int64_t tokens, double gate) {
                Case c = chacal_case(rng, of_tokens(tokens), constant({1}, 0.8));
                return gate > 0 ? gated(rng, std::move(c), gate, gate) : c;
              }};
}

Operation continued() {
  std::vector<Argument> all =
      inputs({{"earlier", "[key tokens, heads * v_width]: y of the positions before"}});
  for (Argument& argument : all) argument.differentiable = false;
  return {.name = "chacal_continued",
          .page = "chacal",
          .formula =
              "new rows of y: y_i = sum_(j<i) P_ij ((1 - gamma) v_j + gamma y_j) + (1 - "
              "gamma) P_ii v_i",
          .inputs = all,
          .attributes = head_attributes(score_attributes()),
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            const ScoreVars s = score_call(c);
            const HeadVars v = value_call(c, s);
            const Heads earlier{c.in("earlier").value(), 0, s.q.heads, v.width};
            return {{"y", chacal(s, v, c.in("gamma"), earlier, softmax_call(c).sink)}};
          },
          .cases = continued_cases,
          .products = true};
}

std::vector<Operation> chacal_operations() {
  return {fused_or_composed(true), fused_or_composed(false), continued()};
}

}  // namespace

extern const Family chacal_family;
constinit const Family chacal_family{chacal_operations};

}  // namespace longhand::catalog
