#include "autograd/delta.h"

#include <cmath>

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"
#include "core/contract/delta.h"

namespace longhand::catalog {
namespace {

std::int64_t delta_attribute(const Case& c, const char* name) {
  const auto found = c.attributes.find(name);
  return found == c.attributes.end() ? 0 : std::stoll(found->second);
}

/// A case for the delta rule. After the multiplication by 1 / sqrt(width), keys have length 1. They
/// share a common direction, so later tokens overwrite part of what earlier tokens wrote to the
/// memory. beta, the strength with which a token corrects the memory, is at most 1.9. The decay
/// factor of a token is between 1/2 and 1.
Case delta_case(Rng& rng, const HeadShape& s, bool decays = true) {
  Case c = head_case(rng, s);
  HostTensor& k = s.gap < 0 ? c.inputs["k"] : c.inputs["q"];
  const std::int64_t columns = k.shape.columns(), first = delta_attribute(c, "k_column");
  const double length = std::sqrt(static_cast<double>(s.width));
  for (std::int64_t row = 0; row < k.shape.rows(); ++row) {
    for (std::int64_t h = 0; h < s.key_heads; ++h) {
      double* const key = &k.values[static_cast<std::size_t>(row * columns + first + h * s.width)];
      double squares = 0;
      for (std::int64_t e = 0; e < s.width; ++e) {
        key[e] += 0.5;
        squares += key[e] * key[e];
      }
      for (std::int64_t e = 0; e < s.width; ++e) key[e] *= length / std::sqrt(squares);
    }
  }
  const Shape numbers{total(s.lengths), s.key_heads};
  c.inputs["beta"] = uniforms(rng, numbers, 0.1, 1.9);
  if (decays) c.inputs["decay"] = uniforms(rng, numbers, -0.7, 0);
  return c;
}

std::vector<Case> delta_cases(Rng& rng, const std::vector<HeadShape>& shapes) {
  std::vector<Case> cases;
  for (const HeadShape& shape : shapes) {
    for (const bool decays : {true, false}) cases.push_back(delta_case(rng, shape, decays));
  }
  return cases;
}

std::vector<Case> small_delta(Rng& rng) {
  std::vector<Case> cases = delta_cases(rng, small_heads());
  cases.push_back(delta_case(rng, small_heads()[1]));
  cases.back().attributes["scale"] = "0.4";
  return cases;
}

/// Cases for composed_delta(), which stores running sums of the logarithms of decay factors. The
/// tolerance of the parity test in bf16 is as large as if these sums were rounded to bf16. It thus
/// grows with the sums. The additional cases have short sequences or weak decay, so their sums are
/// small. Only then does the test detect a result that is wrong by 2%.
std::vector<Case> medium_delta(Rng& rng) {
  std::vector<Case> cases = delta_cases(rng, medium_heads());
  for (const auto& [length, count, least] : {std::tuple{6, 40, -2.0}, {40, 16, -0.1}}) {
    HeadShape s{.lengths = std::vector<int>(static_cast<std::size_t>(count), length),
                .heads = 4,
                .key_heads = 4,
                .width = 32,
                .v_width = 32};
    cases.push_back(delta_case(rng, s));
    cases.back().inputs["beta"] = uniforms(rng, {length * count, 4}, 0.1, 0.9);
    cases.back().inputs["decay"] = uniforms(rng, {length * count, 4}, least, 0);
  }
  return cases;
}

std::vector<Case> large_delta(Rng& rng) {
  std::vector<Case> cases = delta_cases(rng, medium_heads());
  for (Case& c : delta_cases(rng, large_heads())) cases.push_back(std::move(c));
  cases.push_back(delta_case(rng, {.lengths = {200, 64, 129}, .width = 8, .v_width = 8}));
  // The decay of this case is so strong that the memory is forgotten within one chunk (the tokens
  // that a kernel processes together).
  cases.push_back(delta_case(rng, {.lengths = {150}, .width = 8, .v_width = 8}));
  cases.back().inputs["decay"] = uniforms(rng, {150, 1}, -9, 0);
  return cases;
}

DeltaVars delta_call(const Call& c) {
  const ScoreVars s = key_call(c);
  DeltaVars in{.q = s.q,
               .k = s.k,
               .v = value_call(c, s),
               .segments = s.queries,
               .beta = c.in("beta"),
               .decay = c.maybe("decay")};
  if (c.number("scale") != 0) in.scale = c.number("scale");
  return in;
}

std::vector<Argument> delta_inputs(bool differentiable) {
  std::vector<Argument> inputs = head_inputs({
      {"beta", "[tokens, key_heads]: how far a token corrects", Role::master},
      {"decay", "[tokens, key_heads]: ln of what is kept; without it all", Role::master, true,
       true},
  });
  std::erase_if(inputs, [](const Argument& a) { return a.name == "key_lengths"; });
  if (!differentiable) {
    for (Argument& input : inputs) input.differentiable = false;
    inputs.push_back(
        {"before", "[sequences, key_heads * width * v_width]: memories", Role::master, false});
  }
  return inputs;
}

const char* const delta_formula =
    "y_t = S_t^T q_t, S_t = a_t (I - beta_t k_t k_t^T) S_(t-1) + beta_t k_t v_t^T, a_t = "
    "exp(decay_t), q and k times scale";

Operation fused_or_composed_delta(bool fused) {
  return {
      .name = fused ? "delta" : "composed_delta",
      .page = "delta",
      .formula = delta_formula,
      .inputs = delta_inputs(true),
      .attributes = head_attributes({{"scale", "0", "factor of q and of k; 0: 1 / sqrt(width)"}}),
      .outputs = {"y"},
      .run = [fused](const Call& c) -> std::vector<Output> {
        const DeltaVars in = delta_call(c);
        return {{"y", fused ? delta(in) : composed_delta(in)}};
      },
      .cases = small_delta,
      .large = fused ? large_delta : medium_delta,
      .of_length =
          [](Rng& rng, std::int64_t tokens, double gate) {
            Case c = delta_case(rng, of_tokens(tokens), gate > 0);
            if (gate > 0) c.inputs["decay"] = constant({tokens, 2}, std::log(gate));
            return c;
          }};
}

std::vector<Operation> delta_operations() {
  return {
      fused_or_composed_delta(true),
      fused_or_composed_delta(false),
      {.name = "delta_continued",
       .page = "delta",
       .formula = delta_formula,
       .inputs = delta_inputs(false),
       .attributes = head_attributes({{"scale", "0", "factor of q and of k; 0: 1 / sqrt(width)"}}),
       .outputs = {"y", "after"},
       .run = [](const Call& c) -> std::vector<Output> {
         const Tensor before = c.in("before").value(), after = empty_like(before);
         const Var y = delta(delta_call(c), {.before = before, .after = after});
         return {{"y", y}, {"after", after}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const HeadShape& s :
                  {small_heads()[2], small_heads()[3], medium_heads()[1],
                   HeadShape{.lengths = {1, 0, 70}, .width = 12, .v_width = 20}}) {
               cases.push_back(delta_case(rng, s));
               cases.back().inputs["before"] =
                   normals(rng, {std::ssize(s.lengths), s.key_heads * s.width * s.v_width});
             }
             return cases;
           }}};
}

}  // namespace

extern const Family delta_family;
constinit const Family delta_family{delta_operations};

}  // namespace longhand::catalog
