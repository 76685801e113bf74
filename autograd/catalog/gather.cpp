#include "autograd/gather.h"

#include "autograd/catalog/catalog.h"
#include "core/contract/gather.h"

namespace longhand::catalog {
namespace {

Operation embedding_operation() {
  return {
      .name = "embedding",
      .page = "gather",
      .formula = "y_i = table_(ids_i)",
      .inputs = {{"table", "[vocabulary, n]", Role::weight}, {"ids", "[rows]", Role::index, false}},
      .attributes = {},
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        return {{"y", embedding(c.in("table"), c.in("ids").value(), c.activations())}};
      },
      .cases =
          [](Rng& rng) {
            std::vector<Case> cases;
            cases.push_back({{{"table", normals(rng, {1, 3})}, {"ids", integers(rng, {4}, 0, 0)}}});
            cases.push_back(
                {{{"table", normals(rng, {7, 5})}, {"ids", integers(rng, {40}, 0, 6)}}});
            cases.push_back(
                {{{"table", normals(rng, {50, 33})}, {"ids", integers(rng, {9}, 0, 49)}}});
            cases.push_back({{{"table", normals(rng, {4, 8})}, {"ids", constant({0}, 0)}}});
            return cases;
          },
      .large = [](Rng& rng) {  // each of the three ids occurs in hundreds of rows
        return std::vector<Case>{
            {{{"table", normals(rng, {3, 17})}, {"ids", integers(rng, {1500}, 0, 2)}}}};
      }};
}

Operation gather_operation() {
  return {.name = "gather",
          .page = "gather",
          .formula = "y_ij = x_i,(index_ij)",
          .inputs = {{"x", "[rows, n]"}, {"index", "[rows, k]", Role::index, false}},
          .attributes = {},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            return {{"y", gather(c.in("x"), c.in("index").value())}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                cases.push_back(
                    {{{"x", normals(rng, {3, 1})}, {"index", integers(rng, {3, 2}, 0, 0)}}});
                cases.push_back(
                    {{{"x", normals(rng, {5, 9})}, {"index", integers(rng, {5, 20}, 0, 8)}}});
                cases.push_back(
                    {{{"x", normals(rng, {17, 40})}, {"index", integers(rng, {17, 1}, 0, 39)}}});
                return cases;
              }};
}

Operation argmax_operation() {
  return {.name = "argmax",
          .page = "gather",
          .formula = "y_i = the first j with the largest x_ij",
          .inputs = {{"x", "[rows, n]", Role::activation, false}},
          .attributes = {},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor& x = c.in("x").value();
            const Tensor y(c.backend(), {x.rows()}, DType::i32);
            c.backend()(Argmax{.x = x, .y = y});
            return {{"y", y}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                for (const Shape& s : {Shape{1, 1}, Shape{4, 7}, Shape{9, 100}, Shape{2, 3, 16}}) {
                  cases.push_back({{{"x", normals(rng, s)}}});
                }
                // Several entries are equal to the maximum; the first of them must be chosen.
                cases.push_back({{{"x", integers(rng, {20, 37}, 0, 2)}}});
                cases.push_back({{{"x", constant({3, 50}, -1)}}});
                return cases;
              }};
}

std::vector<Operation> gather_operations() {
  return {embedding_operation(), gather_operation(), argmax_operation()};
}

}  // namespace

extern const Family gather_family;
constinit const Family gather_family{gather_operations};

}  // namespace longhand::catalog
