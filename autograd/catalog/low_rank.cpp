#include "autograd/low_rank.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

struct LowRankExtents {
  std::int64_t rows, in, rank, out, columns, first;
};

Case added(Rng& rng, const LowRankExtents& e) {
  const auto deviation = [](std::int64_t in) {
    return in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 1.0;
  };
  return {{{"y", normals(rng, {e.rows, e.columns})},
           {"x", normals(rng, {e.rows, e.in})},
           {"a", normals(rng, {e.rank, e.in}, deviation(e.in))},
           {"b", normals(rng, {e.out, e.rank}, deviation(e.rank))}},
          {{"first_column", std::to_string(e.first)}, {"scale", e.rank % 2 ? "1" : "0.5"}}};
}

std::vector<Case> added_cases(Rng& rng) {
  std::vector<Case> cases;
  for (const LowRankExtents& e : {LowRankExtents{1, 1, 1, 1, 1, 0},
                                  {5, 7, 2, 3, 9, 0},
                                  {6, 9, 3, 4, 11, 5},
                                  {17, 33, 4, 16, 16, 0},
                                  {9, 20, 8, 5, 40, 35},
                                  {0, 3, 2, 4, 6, 1}}) {
    cases.push_back(added(rng, e));
  }
  return cases;
}

std::vector<Case> large_added_cases(Rng& rng) {
  return {added(rng, {70, 48, 8, 40, 56, 8}), added(rng, {130, 66, 16, 64, 70, 6})};
}

std::vector<Operation> low_rank_operations() {
  return {{.name = "low_rank",
           .page = "low_rank",
           .formula = "z = y, and y + scale (x a^T) b^T in columns from first_column on",
           .inputs = {{"y", "[rows, columns]"},
                      {"x", "[rows, in]"},
                      {"a", "[rank, in]", Role::weight},
                      {"b", "[out, rank]", Role::weight}},
           .attributes = {{"first_column", "0", "first column of y to which the product is added"},
                          {"scale", "1", "factor of the product"}},
           .outputs = {"z"},
           .run = [](const Call& c) -> std::vector<Output> {
             return {{"z", low_rank(c.in("y"), c.in("x"), c.in("a"), c.in("b"),
                                    {.first_column = c.integer("first_column"),
                                     .scale = c.number("scale")})}};
           },
           .cases = added_cases,
           .products = true,
           .large = large_added_cases}};
}

}  // namespace

extern const Family low_rank_family;
constinit const Family low_rank_family{low_rank_operations};

}  // namespace longhand::catalog
