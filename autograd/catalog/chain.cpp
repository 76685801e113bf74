#include "autograd/chain.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

/// Queries, keys and values of so many heads, and a gain of either sign for each.
Case chain_case(Rng& rng, HeadShape shape, double least, double most) {
  shape.key_heads = shape.heads;
  Case c = head_case(rng, shape);
  c.inputs["gain"] = uniforms(rng, {total(shape.lengths), shape.heads}, least, most);
  return c;
}

std::vector<Case> chain_cases(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    cases.push_back(chain_case(rng, shape, -0.95, -0.05));
    cases.push_back(chain_case(rng, shape, -0.9, 0.9));
  }
  cases.push_back(chain_case(rng, shapes[1], 0, 0));
  cases.push_back(chain_case(rng, shapes[1], -1, -1));
  cases.back().attributes["scale"] = "0.4";
  return cases;
}

std::vector<Case> small_chains(Rng& rng) { return chain_cases(rng, small_heads()); }
std::vector<Case> medium_chains(Rng& rng) { return chain_cases(rng, medium_heads()); }
std::vector<Case> large_chains(Rng& rng) {
  std::vector<Case> cases = medium_chains(rng);
  for (Case& c : chain_cases(rng, large_heads())) cases.push_back(std::move(c));
  return cases;
}

std::vector<Argument> chain_inputs(std::vector<Argument> more) {
  more.insert(more.begin(), {"gain", "[tokens, heads]", Role::master});
  return head_inputs(std::move(more));
}

Operation chain_operation(bool fused) {
  return {.name = fused ? "chain" : "composed_chain",
          .page = "chain",
          .formula = "y = (I - diag(gain) S)^-1 v, S the softmax over earlier keys alone",
          .inputs = chain_inputs({}),
          .attributes = head_attributes(score_attributes()),
          .outputs = {"y"},
          .run = [fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = score_call(c);
            const HeadVars v = value_call(c, s);
            return {{"y", fused ? chain(s, v, c.in("gain")) : composed_chain(s, v, c.in("gain"))}};
          },
          .cases = small_chains,
          .products = true,
          .large = fused ? large_chains : medium_chains};
}

std::vector<Operation> all_chains() {
  std::vector<Argument> inputs =
      chain_inputs({{"earlier", "[key tokens, heads * v_width]: y of the positions before"}});
  for (Argument& argument : inputs) argument.differentiable = false;
  return {chain_operation(true),
          chain_operation(false),
          {.name = "chain_continued",
           .page = "chain",
           .formula = "new rows of y: y_i = v_i + gain_i sum_(j<i) S_ij y_j",
           .inputs = inputs,
           .attributes = head_attributes(score_attributes()),
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             const ScoreVars s = score_call(c);
             const HeadVars v = value_call(c, s);
             const Heads earlier{c.in("earlier").value(), 0, s.q.heads, v.width};
             return {{"y", chain(s, v, c.in("gain"), earlier)}};
           },
           .cases =
               [](Rng& rng) {
                 std::vector<Case> cases;
                 for (const HeadShape& shape : decoding_heads()) {
                   cases.push_back(chain_case(rng, shape, -0.95, 0.3));
                   cases.back().inputs["earlier"] =
                       normals(rng, {total(shape.key_lengths), shape.heads * shape.v_width}, 1, 2);
                 }
                 return cases;
               },
           .products = true}};
}

}  // namespace

extern const Family chain_family;
constinit const Family chain_family{all_chains};

}  // namespace longhand::catalog
