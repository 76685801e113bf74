#include "autograd/chain.h"

#include "autograd/catalog/heads.h"
#include "autograd/composed_attention.h"

/// The two ops of core/contract/chain.h, each named after its mechanism: `chacal` chains attention,
/// `chain` chains values.
namespace longhand::catalog {
namespace {

/// A ChaCAL case with one gamma, or with one for each head.
Case chacal_case(Rng& rng, const HeadShape& shape, const HostTensor& gamma) {
  Case c = head_case(rng, shape);
  c.inputs["gamma"] = gamma;
  return c;
}

std::vector<Case> varied_chacal(Rng& rng, const std::vector<HeadShape>& shapes) {
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
  cases.back().attributes["scale"] = "0.4";
  return cases;
}

/// Adds cases with each score argument.
void add_scored_chacal(std::vector<Case>& cases, Rng& rng, const HeadShape& shape) {
  for (const char* const name : {"tau", "shift", "sink"}) {
    cases.push_back(scored(rng, head_case(rng, shape), {name}));
    cases.back().inputs["gamma"] = constant({1}, 0.8);
  }
}

std::vector<Case> small_chacal(Rng& rng) {
  std::vector<Case> cases = varied_chacal(rng, small_heads());
  add_scored_chacal(cases, rng, small_heads()[2]);
  return cases;
}
/// The gradient of a head's gamma is a single number, so one case says little about rounding.
/// Several cases are used, with gammas whose 1 / (1 - gamma) does not magnify the noise much.
std::vector<Case> medium_chacal(Rng& rng) {
  std::vector<Case> cases = varied_chacal(rng, medium_heads());
  const HeadShape four{.lengths = {12, 20}, .heads = 4, .key_heads = 2, .width = 8, .v_width = 8};
  for (int i = 0; i < 16; ++i) {
    cases.push_back(head_case(rng, four));
    cases.back().inputs["gamma"] = uniforms(rng, {four.heads}, 0.1, 0.6);
  }
  add_scored_chacal(cases, rng, medium_heads()[1]);
  return cases;
}
std::vector<Case> large_chacal(Rng& rng) {
  std::vector<Case> cases = medium_chacal(rng);
  for (Case& c : varied_chacal(rng, large_heads())) cases.push_back(std::move(c));
  return cases;
}
std::vector<Case> continued_chacal(Rng& rng) {
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

/// A case that chains values: as many key heads as query heads, and a gain of either sign for each
/// row.
Case chain_case(Rng& rng, const HeadShape& shape, double least, double most) {
  Case c = ungrouped_case(rng, shape);
  c.inputs["gain"] = uniforms(rng, {total(shape.lengths), shape.heads}, least, most);
  return c;
}

std::vector<Case> varied_chains(Rng& rng, const std::vector<HeadShape>& shapes) {
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

std::vector<Case> small_chains(Rng& rng) { return varied_chains(rng, small_heads()); }
std::vector<Case> medium_chains(Rng& rng) { return varied_chains(rng, medium_heads()); }
std::vector<Case> large_chains(Rng& rng) {
  std::vector<Case> cases = medium_chains(rng);
  for (Case& c : varied_chains(rng, large_heads())) cases.push_back(std::move(c));
  return cases;
}
std::vector<Case> continued_chains(Rng& rng) {
  std::vector<Case> cases;
  for (const HeadShape& shape : decoding_heads()) {
    cases.push_back(chain_case(rng, shape, -0.95, 0.3));
    cases.back().inputs["earlier"] =
        normals(rng, {total(shape.key_lengths), shape.heads * shape.v_width}, 1, 2);
  }
  return cases;
}

using Cases = std::vector<Case> (*)(Rng&);

struct Form {
  ChainOf of;
  std::string name, formula, of_rows;
  std::string gain, gain_shape;
  Cases small, medium, large, continued;
  Var (*composed)(const ScoreVars& s, const HeadVars& v, const Var& gain);

  std::vector<Argument> inputs(bool with_earlier = false) const {
    std::vector<Argument> more;
    if (of == ChainOf::attention) more = score_arguments();
    more.push_back({gain, gain_shape, Role::master});
    if (with_earlier) {
      more.push_back({"earlier", "[key tokens, heads * v_width]: y of the positions before"});
    }
    return head_inputs(std::move(more));
  }
  std::vector<Attribute> attributes() const {
    return of == ChainOf::attention ? head_attributes(score_attributes())
                                    : ungrouped_attributes(score_attributes());
  }
};

Operation whole(const Form& form, bool fused) {
  return {.name = (fused ? "" : "composed_") + form.name,
          .page = form.name,
          .formula = form.formula,
          .inputs = form.inputs(),
          .attributes = form.attributes(),
          .outputs = {"y"},
          .run = [form, fused](const Call& c) -> std::vector<Output> {
            const ScoreVars s = score_call(c, form.of == ChainOf::attention);
            const HeadVars v = value_call(c, s);
            const Var gain = c.in(form.gain);
            return {{"y", fused ? chain(form.of, s, v, gain) : form.composed(s, v, gain)}};
          },
          .cases = form.small,
          .products = true,
          .large = fused ? form.large : form.medium};
}

Operation continued(const Form& form) {
  std::vector<Argument> inputs = form.inputs(true);
  for (Argument& argument : inputs) argument.differentiable = false;
  return {.name = form.name + "_continued",
          .page = form.name,
          .formula = "new rows of y: " + form.of_rows,
          .inputs = inputs,
          .attributes = form.attributes(),
          .outputs = {"y"},
          .run = [form](const Call& c) -> std::vector<Output> {
            const ScoreVars s = score_call(c, form.of == ChainOf::attention);
            const HeadVars v = value_call(c, s);
            const Heads earlier{c.in("earlier").value(), 0, s.q.heads, v.width};
            return {{"y", chain(form.of, s, v, c.in(form.gain), earlier)}};
          },
          .cases = form.continued,
          .products = true};
}

std::vector<Operation> chain_operations() {
  std::vector<Operation> all;
  for (const Form& form :
       {Form{.of = ChainOf::attention,
       .name = "chacal",
       .formula = "Y = (1 - gamma) (I - gamma P-)^-1 P V, P- the strictly lower part of P",
       .of_rows = "y_i = sum_(j<i) P_ij ((1 - gamma) v_j + gamma y_j) + (1 - gamma) P_ii v_i",
       .gain = "gamma",
       .gain_shape = "[1] or [heads]",
       .small = small_chacal,
       .medium = medium_chacal,
       .large = large_chacal,
       .continued = continued_chacal,
       .composed = [](const ScoreVars&s, const HeadVars&v,
                      const Var&g) { return composed_chacal(s, v, g); }},
        Form{.of = ChainOf::values,
        .name = "chain",
        .formula = "y = (I - diag(gain) S)^-1 v, S the softmax over earlier keys alone",
        .of_rows = "y_i = v_i + gain_i sum_(j<i) S_ij y_j",
        .gain = "gain",
        .gain_shape = "[tokens, heads]",
        .small = small_chains,
        .medium = medium_chains,
        .large = large_chains,
        .continued = continued_chains,
        .composed = composed_chain}}) {
    all.push_back(whole(form, true));
    all.push_back(whole(form, false));
    all.push_back(continued(form));
  }
  return all;
}

}  // namespace

extern const Family chain_family;
constinit const Family chain_family{chain_operations};

}  // namespace longhand::catalog
