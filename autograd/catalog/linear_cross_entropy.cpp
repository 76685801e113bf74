#include "autograd/linear_cross_entropy.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

struct LossExtents {
  std::int64_t rows, in, groups;
  int classes, lowest;  // lowest: the smallest target to draw; negative targets are not scored
};

Case choices(Rng& rng, const LossExtents& e, bool weighted, const char* at_once, bool gathered) {
  const std::int64_t counted = gathered ? (e.rows + 1) / 2 : e.rows;
  Case c{
      {{"x", normals(rng, {e.rows, e.in})},
       {"w", normals(rng, {e.groups * e.classes, e.in}, 2 / std::sqrt(static_cast<double>(e.in)))},
       {"targets", integers(rng, {counted, e.groups}, e.lowest, e.classes - 1)}},
      {{"groups", std::to_string(e.groups)}, {"at_once", at_once}}};
  if (weighted) c.inputs["weights"] = uniforms(rng, {counted, e.groups}, 0, 2);
  if (gathered) c.inputs["rows"] = integers(rng, {counted}, 0, static_cast<int>(e.rows) - 1);
  return c;
}

std::vector<Case> all_choices(Rng& rng) {
  std::vector<Case> cases;
  for (const bool gathered : {false, true}) {
    for (const char* at_once : {"1", "4", "256"}) {
      cases.push_back(choices(rng, {1, 3, 1, 1, 0}, false, at_once, gathered));
      cases.push_back(choices(rng, {9, 6, 1, 33, -9}, false, at_once, gathered));
      cases.push_back(choices(rng, {8, 5, 1, 17, 0}, true, at_once, gathered));
      cases.push_back(choices(rng, {7, 16, 3, 5, -1}, true, at_once, gathered));
    }
  }
  return cases;
}

std::vector<Operation> linear_cross_entropy_operations() {
  return {
      {.name = "linear_cross_entropy",
       .page = "loss",
       .formula = "cross_entropy(x w^T, targets), computed for some rows at a time",
       .inputs = {{"x", "[rows, in]"},
                  {"w", "[groups classes, in]", Role::weight},
                  {"targets", "[n, groups]; negative targets are not scored", Role::index, false},
                  {"weights", "[n, groups]", Role::master, false, true},
                  {"rows", "[n]: rows of x that are scored; default: all", Role::index, false,
                   true}},
       .attributes = {{"groups", "1", "independent choices per row"},
                      {"at_once", "256", "number of rows whose logits are computed at a time"}},
       .outputs = {"loss", "hits"},
       .run = [](const Call& c) -> std::vector<Output> {
         const Tensor hits(c.backend(), {1}, master_type(c.activations()));
         const Var loss = linear_cross_entropy(c.in("x"), c.in("w"), c.in("targets").value(),
                                               {.groups = c.integer("groups"),
                                                .weights = c.maybe("weights").value(),
                                                .hits = hits,
                                                .rows = c.maybe("rows").value(),
                                                .at_once = c.integer("at_once")});
         return {{"loss", loss}, {"hits", hits}};
       },
       .cases = all_choices,
       .products = true}};
}

}  // namespace

extern const Family linear_cross_entropy_family;
constinit const Family linear_cross_entropy_family{linear_cross_entropy_operations};

}  // namespace longhand::catalog
