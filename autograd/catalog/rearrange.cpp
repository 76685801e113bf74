#include "autograd/rearrange.h"

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

/// Reads the attribute `axes`, which has one digit per axis.
std::vector<int> axes_of(const Call& c) {
  std::vector<int> axes;
  for (const char digit : c.word("axes")) axes.push_back(digit - '0');
  return axes;
}

Operation permute_operation() {
  return {.name = "permute",
          .page = "rearrange",
          .formula = "axis k of y is axis axes[k] of x",
          .inputs = {{"x", "[...]"}},
          .attributes = {{"axes", "10", "order of the axes, one digit per axis of y"}},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", permute(c.in("x"), axes_of(c))}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                const std::vector<std::pair<Shape, const char*>> all{{{4}, "0"},
                                                                     {{3, 7}, "10"},
                                                                     {{33, 20}, "10"},
                                                                     {{2, 3, 5}, "201"},
                                                                     {{2, 5, 3}, "021"},
                                                                     {{4, 3, 16}, "102"},
                                                                     {{2, 3, 4, 5}, "3210"},
                                                                     {{1, 17, 3, 16}, "0213"},
                                                                     {{2, 0}, "10"}};
                for (const auto& [shape, axes] : all) {
                  cases.push_back({{{"x", normals(rng, shape)}}, {{"axes", axes}}});
                }
                return cases;
              }};
}

Operation narrow_operation() {
  return {
      .name = "narrow",
      .page = "rearrange",
      .formula = "y = entries first .. first + count - 1 of x along an axis",
      .inputs = {{"x", "[...]"}},
      .attributes = {{"axis", "-1", "axis; negative axes count from the end"},
                     {"first", "0", "index in x of y's first entry"},
                     {"count", "1", "number of entries"}},
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        return {{"y", narrow(c.in("x"), static_cast<int>(c.integer("axis")), c.integer("first"),
                             c.integer("count"))}};
      },
      .cases =
          [](Rng& rng) {
            return std::vector<Case>{
                {{{"x", normals(rng, {9})}}, {{"first", "2"}, {"count", "5"}}},
                {{{"x", normals(rng, {5, 48})}}, {{"first", "16"}, {"count", "24"}}},
                {{{"x", normals(rng, {3, 7})}}, {{"first", "6"}}},
                {{{"x", normals(rng, {2, 6, 5})}}, {{"axis", "1"}, {"first", "1"}, {"count", "4"}}},
                {{{"x", normals(rng, {6, 3})}}, {{"axis", "0"}, {"first", "4"}, {"count", "2"}}},
                {{{"x", normals(rng, {2, 3, 4, 5})}},
                 {{"axis", "2"}, {"first", "1"}, {"count", "2"}}},
                {{{"x", normals(rng, {2, 4})}}, {{"first", "4"}, {"count", "0"}}}};
          }};
}

Operation concat_operation() {
  return {
      .name = "concat",
      .page = "rearrange",
      .formula = "y = a, b and c concatenated along an axis",
      .inputs = {{"a", "[...]"}, {"b", "[...]"}, {"c", "[...]", Role::activation, true, true}},
      .attributes = {{"axis", "0", "axis; negative axes count from the end"}},
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        std::vector<Var> parts{c.in("a"), c.in("b")};
        if (const Var third = c.maybe("c")) parts.push_back(third);
        return {{"y", concat(parts, static_cast<int>(c.integer("axis")))}};
      },
      .cases =
          [](Rng& rng) {
            return std::vector<Case>{
                {{{"a", normals(rng, {3})}, {"b", normals(rng, {4})}}},
                {{{"a", normals(rng, {2, 5})},
                  {"b", normals(rng, {1, 5})},
                  {"c", normals(rng, {3, 5})}}},
                {{{"a", normals(rng, {4, 16})},
                  {"b", normals(rng, {4, 8})},
                  {"c", normals(rng, {4, 24})}},
                 {{"axis", "-1"}}},
                {{{"a", normals(rng, {2, 3, 5})}, {"b", normals(rng, {2, 1, 5})}}, {{"axis", "1"}}},
                {{{"a", normals(rng, {2, 0})}, {"b", normals(rng, {2, 3})}}, {{"axis", "1"}}}};
          }};
}

Operation repeat_operation() {
  return {.name = "repeat",
          .page = "rearrange",
          .formula = "y = x broadcast to the shape of like",
          .inputs = {{"x", "[...]"}, {"like", "[...]", Role::activation, false}},
          .attributes = {},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", repeat(c.in("x"), c.in("like").shape())}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                const std::vector<std::pair<Shape, Shape>> all{{{1}, {19}},
                                                               {{5}, {3, 5}},
                                                               {{4, 1}, {4, 33}},
                                                               {{3, 1}, {2, 3, 6}},
                                                               {{2, 1, 8}, {2, 5, 8}},
                                                               {{1, 3, 1}, {4, 3, 7}},
                                                               {{2, 1, 3, 1}, {2, 4, 3, 5}}};
                for (const auto& [x, like] : all) {
                  cases.push_back({{{"x", normals(rng, x)}, {"like", constant(like, 0)}}});
                }
                return cases;
              }};
}

std::vector<Operation> rearrange_operations() {
  return {permute_operation(), narrow_operation(), concat_operation(), repeat_operation()};
}

}  // namespace

extern const Family rearrange_family;
constinit const Family rearrange_family{rearrange_operations};

}  // namespace longhand::catalog
