#include "autograd/fal.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

std::vector<Case> varied(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    for (const double agreement : {0.5, 0.95, 1.0})
      cases.push_back(decided(rng, head_case(rng, shape), shape, agreement));
  }
  return cases;
}

std::vector<Case> small_cases(Rng& rng) {
  std::vector<Case> cases = varied(rng, small_heads());
  for (Case& c : varied(rng, decoding_heads())) cases.push_back(std::move(c));
  return cases;
}

std::vector<Case> large_cases(Rng& rng) { return varied(rng, large_heads()); }

Operation fused_or_composed(bool fused) {
  return {.name = fused ? "fal" : "composed_fal",
          .page = "fal",
          .formula = "m = max { j < i : q_i . k_j > 0 }; y_i = (q_i . k_m) v_(m+1), or 0",
          .inputs = head_inputs({}),
          .attributes = head_attributes({}),
          .outputs = {"y", "match"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = key_call(c);
            const FalVars in{
                .q = s.q, .k = s.k, .v = value_call(c, s), .queries = s.queries, .keys = s.keys};
            const FalResult r = fused ? fal(in) : composed_fal(in);
            return {{"y", r.y}, {"match", r.match}};
          },
          .cases = small_cases,
          .large = fused ? large_cases : std::function<std::vector<Case>(Rng&)>(),
          .of_length =
              [](Rng& rng, std::int64_t tokens, double) {
                const HeadShape shape = of_tokens(tokens);
                return decided(rng, head_case(rng, shape), shape, 0.5);
              }};
}

std::vector<Operation> fal_operations() {
  return {fused_or_composed(true), fused_or_composed(false)};
}

}  // namespace

extern const Family fal_family;
constinit const Family fal_family{fal_operations};

}  // namespace longhand::catalog
