#include "autograd/elementwise.h"

#include <cmath>

#include "autograd/catalog/catalog.h"
#include "core/formulas.h"

namespace longhand::catalog {
namespace {

const std::vector<Shape> elementwise_shapes{{1}, {7}, {3, 5}, {2, 33}, {0, 4}, {5, 64}, {2, 3, 17}};

/// Inputs for the activation f. They are at least 0.05 away from 0, where relu has its kink. For
/// log they are positive.
HostTensor smooth(Rng& rng, const Shape& shape, Activation f) {
  HostTensor x = normals(rng, shape, 1.5);
  for (double& value : x.values) {
    if (f == Activation::log) value = std::abs(value);
    value += value < 0 ? -0.05 : 0.05;
  }
  return x;
}

template <class... F>
std::vector<Activation> kinds_of(TypeList<F...>) {
  return {F::kind...};
}
const std::vector<Activation> all_activations = kinds_of(Formulas{});

std::string all_names() {
  std::string names;
  for (const Activation f : all_activations) {
    names += (names.empty() ? "" : ", ") + std::string(name_of(f));
  }
  return names;
}

Operation scale_operation() {
  return {.name = "scale",
          .page = "elementwise",
          .formula = "y = alpha x",
          .inputs = {{"x", "[...]"}},
          .attributes = {{"alpha", "1", "the factor"}},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", scale(c.in("x"), c.number("alpha"))}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : elementwise_shapes) {
                  cases.push_back({{{"x", normals(rng, s)}}, {{"alpha", "-1.75"}}});
                }
                return cases;
              }};
}

Operation activate_operation() {
  return {.name = "activate",
          .page = "elementwise",
          .formula = "y = f(x), element by element",
          .inputs = {{"x", "[...]"}},
          .attributes = {{"f", "gelu", "one of " + all_names()}},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", activate(c.activation("f"), c.in("x"))}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Activation f : all_activations) {
                  for (const Shape& s : elementwise_shapes) {
                    cases.push_back({{{"x", smooth(rng, s, f)}}, {{"f", std::string(name_of(f))}}});
                  }
                }
                return cases;
              }};
}

Operation gate_operation() {
  return {.name = "gate",
          .page = "elementwise",
          .formula = "y_ij = f(x_ij) x_i,(w+j)",
          .inputs = {{"x", "[rows, 2 w]"}},
          .attributes = {{"f", "silu", "activation of the first half"}},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", gate(c.activation("f"), c.in("x"))}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Activation f : all_activations) {
                  for (const Shape& s : {Shape{3, 2}, Shape{9, 34}, Shape{1, 128}}) {
                    cases.push_back({{{"x", smooth(rng, s, f)}}, {{"f", std::string(name_of(f))}}});
                  }
                }
                return cases;
              }};
}

Operation add_bias_operation() {
  return {.name = "add_bias",
          .page = "elementwise",
          .formula = "y_ij = x_ij + bias_j + residual_ij",
          .inputs = {{"x", "[rows, n]"},
                     {"bias", "[n]", Role::master, true, true},
                     {"residual", "[rows, n]", Role::activation, true, true}},
          .attributes = {},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", add_bias(c.in("x"), c.maybe("bias"), c.maybe("residual"))}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1, 1}, Shape{5, 17}, Shape{33, 20}}) {
                  const Shape columns{s.back()};
                  cases.push_back({{{"x", normals(rng, s)}, {"bias", normals(rng, columns)}}});
                  cases.push_back({{{"x", normals(rng, s)}, {"residual", normals(rng, s)}}});
                  cases.push_back({{{"x", normals(rng, s)},
                                    {"bias", normals(rng, columns)},
                                    {"residual", normals(rng, s)}}});
                }
                return cases;
              }};
}

std::vector<Operation> elementwise_operations() {
  return {scale_operation(), activate_operation(), gate_operation(), add_bias_operation()};
}

}  // namespace

extern const Family elementwise_family;
constinit const Family elementwise_family{elementwise_operations};

}  // namespace longhand::catalog
