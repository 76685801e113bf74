#include "autograd/combine.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

struct ShapePair {
  Shape a, b;
};
/// Pairs of shapes for two operands. In some pairs the two shapes are equal. In others one operand
/// is broadcast along the first axis, the last axis, both outer axes or a middle axis, or both
/// operands are broadcast. Some sizes are near the length of a vector register.
std::vector<ShapePair> shape_pairs() {
  return {{{1}, {1}},
          {{7}, {7}},
          {{0, 4}, {0, 4}},
          {{5, 64}, {5, 64}},
          {{2, 3, 17}, {17}},
          {{33}, {4, 33}},
          {{3, 5}, {3, 1}},
          {{6, 1}, {6, 40}},
          {{2, 3, 8}, {3, 1}},
          {{2, 1, 9}, {4, 9}},
          {{4, 1}, {1, 6}},
          {{1}, {2, 19}},
          {{2, 3, 2, 4}, {3, 1, 4}}};
}

/// Cases with two operands `a` and `b`. No entry of `b` is near 0, because a / b would be large. No
/// two entries that are combined are near each other, because max(a, b) has a kink at a = b.
std::vector<Case> pairs(Rng& rng) {
  std::vector<Case> cases;
  for (const ShapePair& s : shape_pairs()) {
    HostTensor a = normals(rng, s.a), b = normals(rng, s.b);
    for (double& value : a.values) value = std::round(2 * value) / 2 + 0.1 * rng.uniform();
    for (double& value : b.values) value = std::round(2 * value) / 2 + 0.2 + 0.1 * rng.uniform();
    cases.push_back({{{"a", std::move(a)}, {"b", std::move(b)}}});
  }
  return cases;
}

/// Cases for comparisons of a and b. Two entries are either equal or far apart, so rounding never
/// changes the result.
std::vector<Case> numbers(Rng& rng) {
  std::vector<ShapePair> all = shape_pairs();
  all.push_back({{64, 48}, {48}});
  std::vector<Case> cases;
  for (const ShapePair& s : all) {
    HostTensor a = integers(rng, s.a, -1, 1), b = integers(rng, s.b, -1, 1);
    for (double& value : b.values) value *= 2;
    cases.push_back({{{"a", std::move(a)}, {"b", std::move(b)}}});
  }
  return cases;
}

Operation of_two(std::string name, std::string formula, Var (*run)(const Var&, const Var&),
                 std::vector<Case> (*cases)(Rng&) = pairs, bool differentiable = true) {
  return {.name = std::move(name),
          .page = "combine",
          .formula = std::move(formula),
          .inputs = {{"a", "[...]", Role::activation, differentiable},
                     {"b", "[...], a and b repeated to their common shape", Role::activation,
                      differentiable}},
          .attributes = {},
          .outputs = {"y"},
          .run = [run](const Call& c) -> std::vector<Output> {
            return {{"y", run(c.in("a"), c.in("b"))}};
          },
          .cases = cases};
}

std::vector<Operation> combine_operations() {
  return {of_two("add", "y = a + b", add),
          of_two("subtract", "y = a - b", subtract),
          of_two("multiply", "y = a b, element by element", multiply),
          of_two("divide", "y = a / b, element by element", divide),
          of_two("maximum", "y = max(a, b)", maximum),
          of_two("minimum", "y = min(a, b)", minimum),
          of_two("less", "y = 1 where a < b, else 0", less, numbers, false),
          of_two("less_or_equal", "y = 1 where a <= b, else 0", less_or_equal, numbers, false),
          of_two("equal", "y = 1 where a = b, else 0", equal, numbers, false),
          {.name = "where",
           .page = "combine",
           .formula = "y = a where the mask is not 0, else b",
           .inputs = {{"mask", "[...]", Role::activation, false},
                      {"a", "[...]"},
                      {"b", "[...], all three repeated to their common shape"}},
           .attributes = {},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             return {{"y", where(c.in("mask"), c.in("a"), c.in("b"))}};
           },
           .cases =
               [](Rng& rng) {
                 std::vector<Case> cases = pairs(rng);
                 for (Case& c : cases) {
                   const Shape& mask = c.inputs["a"].shape;
                   c.inputs["mask"] = integers(rng, mask, 0, 1);
                 }
                 return cases;
               }}};
}

}  // namespace

extern const Family combine_family;
constinit const Family combine_family{combine_operations};

}  // namespace longhand::catalog
