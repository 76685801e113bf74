#include "autograd/deltaformer.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

/// The ops of DeltaFormer (core/contract/deltaformer.h).
namespace longhand::catalog {
namespace {

/// A case with as many key heads as query heads. Each query has one gain per head, between `least`
/// and `most`. DeltaFormer multiplies a mean of earlier outputs by the gain.
Case gain_case(Rng& rng, const HeadShape& shape, double least, double most) {
  Case c = ungrouped_case(rng, shape);
  c.inputs["gain"] = uniforms(rng, {total(shape.lengths), shape.heads}, least, most);
  return c;
}

std::vector<Case> varied(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    cases.push_back(gain_case(rng, shape, -0.95, -0.05));
    cases.push_back(gain_case(rng, shape, -0.9, 0.9));
  }
  cases.push_back(gain_case(rng, shapes[1], 0, 0));
  cases.push_back(gain_case(rng, shapes[1], -1, -1));
  cases.back().attributes["scale"] = "-0.4";
  return cases;
}

std::vector<Case> small_cases(Rng& rng) { return varied(rng, small_heads()); }
std::vector<Case> medium_cases(Rng& rng) { return varied(rng, medium_heads()); }
std::vector<Case> large_cases(Rng& rng) {
  std::vector<Case> cases = medium_cases(rng);
  for (Case& c : varied(rng, large_heads())) cases.push_back(std::move(c));
  return cases;
}
std::vector<Case> continued_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(gain_case(rng, shape, -0.95, 0.3));
    cases.back().inputs["earlier"] =
        normals(rng, {total(shape.key_lengths), shape.heads * shape.v_width}, 1, 2);
  }
  return cases;
}

std::vector<Argument> inputs(std::vector<Argument> more = {}) {
  more.insert(more.begin(), {"gain", "[tokens, heads]", Role::master});
  return head_inputs(std::move(more));
}

DeltaFormerVars call(const Call& c) {
  const ScoreVars s = score_call(c, false);
  return {.q = s.q,
          .k = s.k,
          .v = value_call(c, s),
          .gain = c.in("gain"),
          .queries = s.queries,
          .keys = s.keys,
          .scale = s.scale};
}

Operation fused_or_composed(bool fused) {
  return {.name = fused ? "deltaformer" : "composed_deltaformer",
          .page = "deltaformer",
          .formula = "y = (I - diag(gain) S)^-1 v, S the softmax over earlier keys alone",
          .inputs = inputs(),
          .attributes = ungrouped_attributes(score_attributes()),
          .outputs = {"y"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            return {{"y", fused ? deltaformer(call(c)) : composed_deltaformer(call(c))}};
          },
          .cases = small_cases,
          .products = true,
          .large = fused ? large_cases : medium_cases,
          .of_length = [](Rng& rng, std::int64_t tokens,
                          double) { return gain_case(rng, of_tokens(tokens), -0.9, 0.9); }};
}

Operation continued() {
  std::vector<Argument> all =
      inputs({{"earlier", "[key tokens, heads * v_width]: y of the positions before"}});
  for (Argument& argument : all) argument.differentiable = false;
  return {.name = "deltaformer_continued",
          .page = "deltaformer",
          .formula = "new rows of y: y_i = v_i + gain_i sum_(j<i) S_ij y_j",
          .inputs = all,
          .attributes = ungrouped_attributes(score_attributes()),
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            const DeltaFormerVars in = call(c);
            return {{"y", deltaformer(in, {c.in("earlier").value(), 0, in.q.heads, in.v.width})}};
          },
          .cases = continued_cases,
          .products = true};
}

std::vector<Operation> deltaformer_operations() {
  return {fused_or_composed(true), fused_or_composed(false), continued()};
}

}  // namespace

extern const Family deltaformer_family;
constinit const Family deltaformer_family{deltaformer_operations};

}  // namespace longhand::catalog
