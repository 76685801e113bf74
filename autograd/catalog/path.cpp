#include <cmath>

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

namespace longhand::catalog {
namespace {

/// A case for PaTH attention, in which each token multiplies the keys of earlier tokens by the
/// matrix I - beta w w^T. The vectors w have length 1, and beta is between 0.1 and 1.9.
Case path_case(Rng& rng, const HeadShape& shape) {
  Case c = ungrouped_case(rng, shape);
  const std::int64_t tokens = total(shape.lengths);
  HostTensor w = normals(rng, {tokens, shape.heads * shape.width});
  for (std::size_t first = 0; first < w.values.size();
       first += static_cast<std::size_t>(shape.width)) {
    double squares = 0;
    for (std::int64_t e = 0; e < shape.width; ++e) {
      const double x = w.values[first + static_cast<std::size_t>(e)];
      squares += x * x;
    }
    for (std::int64_t e = 0; e < shape.width; ++e) {
      w.values[first + static_cast<std::size_t>(e)] /= std::sqrt(squares);
    }
  }
  c.inputs["w"] = w;
  c.inputs["beta"] = uniforms(rng, {tokens, shape.heads}, 0.1, 1.9);
  return c;
}

std::vector<Case> path_cases(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) cases.push_back(path_case(rng, shape));
  return cases;
}

/// The last case has 480 tokens and 4 heads, because the gradient of beta is only one number per
/// token and head. In bf16, an error of 2% can be detected only in the mean of many such numbers.
std::vector<Case> medium_paths(Rng& rng) {
  std::vector<Case> cases = path_cases(rng, medium_heads());
  cases.push_back(path_case(rng, {.lengths = std::vector<int>(24, 20),
                                  .heads = 4,
                                  .key_heads = 4,
                                  .width = 16,
                                  .v_width = 16}));
  return cases;
}

std::vector<Operation> path_operations() {
  std::vector<Argument> inputs =
      head_inputs({{"w", "[tokens, heads * width]: what each token reflects along"},
                   {"beta", "[tokens, heads]: by how much, 2 for all of it", Role::master}});
  std::erase_if(inputs, [](const Argument& a) { return a.name == "key_lengths"; });
  return {{.name = "composed_path",
           .page = "path",
           .formula = "softmax attention with scores q_i . H_i ... H_(j+1) k_j / sqrt(width), H_t "
                      "= I - beta_t w_t w_t^T",
           .inputs = inputs,
           .attributes = ungrouped_attributes({}),
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             const ScoreVars s = key_call(c, false);
             return {{"y", composed_path({.q = s.q,
                                          .k = s.k,
                                          .v = value_call(c, s),
                                          .w = all_columns(c.in("w"), s.q.heads),
                                          .beta = c.in("beta"),
                                          .queries = s.queries})}};
           },
           .cases = [](Rng& rng) { return path_cases(rng, small_heads()); },
           .products = true,
           .large = medium_paths,
           .of_length = [](Rng& rng, std::int64_t tokens,
                           double) { return path_case(rng, of_tokens(tokens)); }}};
}

}  // namespace

extern const Family path_family;
constinit const Family path_family{path_operations};

}  // namespace longhand::catalog
