#include "autograd/loss.h"

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

Case choices(Rng& rng, std::int64_t rows, std::int64_t groups, int classes, int lowest_target,
             bool weighted) {
  Case c{{{"logits", normals(rng, {rows, groups * classes}, 2)},
          {"targets", integers(rng, {rows, groups}, lowest_target, classes - 1)}},
         {{"groups", std::to_string(groups)}}};
  if (weighted) c.inputs["weights"] = uniforms(rng, {rows, groups}, 0, 2);
  return c;
}

Operation cross_entropy_operation() {
  return {
      .name = "cross_entropy",
      .page = "loss",
      .formula = "loss = sum w_ig (log sum_c exp logits_igc - logits_ig,t) / sum w_ig",
      .inputs = {{"logits", "[rows, groups classes]"},
                 {"targets", "[rows, groups]; negative targets are not scored", Role::index, false},
                 {"weights", "[rows, groups]", Role::master, false, true}},
      .attributes = {{"groups", "1", "independent choices per row"}},
      .outputs = {"loss", "hits"},
      .run = [](const Call& c) -> std::vector<Output> {
        const Tensor hits(c.backend(), {1}, master_type(c.activations()));
        const Var loss = cross_entropy(
            c.in("logits"), c.in("targets").value(),
            {.groups = c.integer("groups"), .weights = c.maybe("weights").value(), .hits = hits});
        return {{"loss", loss}, {"hits", hits}};
      },
      .cases =
          [](Rng& rng) {
            std::vector<Case> cases;
            cases.push_back(choices(rng, 1, 1, 1, 0, false));
            cases.push_back(choices(rng, 5, 1, 7, 0, false));
            cases.push_back(choices(rng, 9, 1, 65, -3, false));
            cases.push_back(choices(rng, 6, 1, 103, 0, true));
            cases.push_back(choices(rng, 3, 16, 8, -2, false));
            cases.push_back(choices(rng, 4, 3, 5, -1, true));
            cases.push_back(
                {{{"logits", normals(rng, {3, 4})}, {"targets", constant({3, 1}, -1)}}});
            cases.push_back({{{"logits", normals(rng, {3, 40}, 1, 300)},
                              {"targets", integers(rng, {3, 1}, 0, 39)}}});
            return cases;
          }};
}

Operation binary_cross_entropy_operation() {
  return {.name = "binary_cross_entropy",
          .page = "loss",
          .formula = "loss = sum w_i (max(x_i, 0) - x_i t_i + log(1 + exp(-|x_i|))) / sum w_i",
          .inputs = {{"logits", "[...]"},
                     {"targets", "[...], in [0, 1]", Role::master, false},
                     {"weights", "[...]", Role::master, false, true}},
          .attributes = {},
          .outputs = {"loss"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"loss", binary_cross_entropy(c.in("logits"), c.in("targets").value(),
                                                  c.maybe("weights").value())}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1}, Shape{33}, Shape{5, 7}}) {
                  Case c{{{"logits", normals(rng, s, 3)}, {"targets", uniforms(rng, s, 0, 1)}}};
                  cases.push_back(c);
                  c.inputs["weights"] = uniforms(rng, s, 0, 2);
                  cases.push_back(c);
                }
                return cases;
              }};
}

Operation squared_error_operation() {
  return {.name = "squared_error",
          .page = "loss",
          .formula = "loss = mean (x_i - t_i)^2",
          .inputs = {{"x", "[...]"}, {"targets", "[...]", Role::master, false}},
          .attributes = {},
          .outputs = {"loss"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"loss", squared_error(c.in("x"), c.in("targets").value())}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1}, Shape{33}, Shape{5, 7}}) {
                  cases.push_back({{{"x", normals(rng, s)}, {"targets", normals(rng, s, 2)}}});
                }
                return cases;
              },
          .large = [](Rng& rng) -> std::vector<Case> {
            return {{{{"x", normals(rng, {64, 48})}, {"targets", normals(rng, {64, 48}, 2)}}}};
          }};
}

std::vector<Operation> loss_operations() {
  return {cross_entropy_operation(), binary_cross_entropy_operation(), squared_error_operation()};
}

}  // namespace

extern const Family loss_family;
constinit const Family loss_family{loss_operations};

}  // namespace longhand::catalog
