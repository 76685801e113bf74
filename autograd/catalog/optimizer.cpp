#include "core/contract/optimizer.h"

#include "core/backend.h"

#include "autograd/catalog/catalog.h"
#include "core/contract/elementwise.h"

namespace longhand::catalog {
namespace {

Tensor copy(const Tensor& x) {
  const Tensor y = empty_like(x);
  x.backend()(Copy{.x = x, .y = y});
  return y;
}

Operation adam_operation() {
  return {.name = "adam",
          .page = "optimizer",
          .formula =
              "w = w - rate (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + epsilon), "
              "after the moments and the decay",
          .inputs = {{"w", "[...]", Role::master, false},
                     {"g", "[...]", Role::master, false},
                     {"m", "[...]", Role::master, false},
                     {"v", "[...]", Role::master, false}},
          .attributes = {{"rate", "1e-3", "learning rate"},
                         {"beta1", "0.9", "decay of the first moment"},
                         {"beta2", "0.999", "decay of the second moment"},
                         {"epsilon", "1e-8", "epsilon, added to the root"},
                         {"decay", "0", "weight decay"},
                         {"decoupled", "1",
                          "1: decoupled weight decay (AdamW); 0: decay is added to the gradient"},
                         {"step", "1", "number of the step, from 1"}},
          .outputs = {"w", "m", "v"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor w = copy(c.in("w").value()), m = copy(c.in("m").value()),
                         v = copy(c.in("v").value());
            const double beta1 = c.number("beta1"), beta2 = c.number("beta2");
            const auto now = adam_now(c.number("rate"), c.integer("step"), beta1, beta2);
            c.backend()(Adam{.parameters = {w},
                             .gradients = {c.in("g").value()},
                             .m = {m},
                             .v = {v},
                             .decay = {c.number("decay")},
                             .now = Tensor::from(c.backend(), {3}, w.dtype(), now),
                             .beta1 = beta1,
                             .beta2 = beta2,
                             .epsilon = c.number("epsilon"),
                             .decoupled = c.flag("decoupled")});
            return {{"w", w}, {"m", m}, {"v", v}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1}, Shape{37}, Shape{12, 40}}) {
                  for (const char* decoupled : {"0", "1"}) {
                    for (const char* step : {"1", "1000"}) {
                      cases.push_back({{{"w", normals(rng, s)},
                                        {"g", normals(rng, s, 0.1)},
                                        {"m", normals(rng, s, 0.1)},
                                        {"v", uniforms(rng, s, 0.001, 0.1)}},
                                       {{"decay", "0.1"},
                                        {"decoupled", decoupled},
                                        {"step", step},
                                        {"rate", "0.01"}}});
                    }
                  }
                }
                return cases;
              }};
}

Operation sgd_operation() {
  return {.name = "sgd",
          .page = "optimizer",
          .formula = "u = momentum u + g + decay w, w = w - rate u",
          .inputs = {{"w", "[...]", Role::master, false},
                     {"g", "[...]", Role::master, false},
                     {"u", "[...]", Role::master, false}},
          .attributes = {{"rate", "1e-3", "learning rate"},
                         {"momentum", "0.9", "share of the velocity that is kept"},
                         {"decay", "0", "weight decay"}},
          .outputs = {"w", "u"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor w = copy(c.in("w").value()), u = copy(c.in("u").value());
            c.backend()(Sgd{.parameters = {w},
                            .gradients = {c.in("g").value()},
                            .velocities = {u},
                            .decay = {c.number("decay")},
                            .rate = Tensor::from(c.backend(), {1}, w.dtype(),
                                                 std::vector<double>{c.number("rate")}),
                            .momentum = c.number("momentum")});
            return {{"w", w}, {"u", u}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1}, Shape{37}, Shape{12, 40}}) {
                  for (const char* momentum : {"0", "0.9"}) {
                    cases.push_back({{{"w", normals(rng, s)},
                                      {"g", normals(rng, s, 0.1)},
                                      {"u", normals(rng, s, 0.1)}},
                                     {{"momentum", momentum}, {"decay", "0.1"}, {"rate", "0.5"}}});
                  }
                }
                return cases;
              }};
}

Operation square_sums_operation() {
  return {
      .name = "square_sums",
      .page = "optimizer",
      .formula = "sums_p = sum x^2 over piece p, of 16384 entries of x, then those of y",
      .inputs = {{"x", "[...]", Role::master, false}, {"y", "[...]", Role::master, false, true}},
      .attributes = {},
      .outputs = {"sums"},
      .run = [](const Call& c) -> std::vector<Output> {
        std::vector<Tensor> tensors{c.in("x").value()}, sums;
        if (const Var y = c.maybe("y")) tensors.push_back(y.value());
        std::int64_t count = 0;
        for (const Tensor& x : tensors) count += SquareSums::pieces(x.size());
        const Tensor all(c.backend(), {count}, tensors.front().dtype());
        std::int64_t at = 0;
        for (const Tensor& x : tensors) {
          sums.push_back(all.slice(at, SquareSums::pieces(x.size())));
          at += sums.back().size();
        }
        c.backend()(SquareSums{.tensors = tensors, .sums = sums});
        return {{"sums", all}};
      },
      .cases =
          [](Rng& rng) {
            std::vector<Case> cases;
            cases.push_back({{{"x", normals(rng, {33})}}, {}});
            cases.push_back({{{"x", normals(rng, {5, 40})}, {"y", normals(rng, {3})}}, {}});
            cases.push_back({{{"x", normals(rng, {SquareSums::piece + 5})},
                              {"y", normals(rng, {2, SquareSums::piece})}},
                             {}});
            return cases;
          }};
}

Operation global_norm_operation() {
  return {
      .name = "global_norm",
      .page = "optimizer",
      .formula = "norm = sqrt(sum squares), factor = min(1, largest / norm)",
      .inputs = {{"squares", "[m]", Role::master, false},
                 {"losses", "[n]", Role::master, false, true}},
      .attributes = {{"largest", "0", "maximum norm; 0: no limit"}},
      .outputs = {"norm", "factor"},
      .run = [](const Call& c) -> std::vector<Output> {
        const DType master = master_type(c.activations());
        const Tensor norm(c.backend(), {1}, master), factor(c.backend(), {1}, master);
        c.backend()(Fill{.value = 1, .y = factor});
        c.backend()(GlobalNorm{.squares = c.in("squares").value(),
                               .largest = c.number("largest"),
                               .norm = norm,
                               .factor = factor,
                               .losses = c.maybe("losses").value()});
        return {{"norm", norm}, {"factor", factor}};
      },
      .cases =
          [](Rng& rng) {
            std::vector<Case> cases;
            for (const char* largest : {"0", "0.5", "1000"}) {
              cases.push_back({{{"squares", uniforms(rng, {1}, 0, 2)}}, {{"largest", largest}}});
              cases.push_back(
                  {{{"squares", uniforms(rng, {300}, 0, 2)}, {"losses", normals(rng, {2})}},
                   {{"largest", largest}}});
            }
            return cases;
          }};
}

std::vector<Operation> optimizer_operations() {
  return {adam_operation(), sgd_operation(), square_sums_operation(), global_norm_operation()};
}

}  // namespace

extern const Family optimizer_family;
constinit const Family optimizer_family{optimizer_operations};

}  // namespace longhand::catalog
