#include "autograd/triangle.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

/// Random n x n matrices whose off-diagonal entries have the standard deviation 0.5/sqrt(n) and
/// whose diagonal entries are at least 1.5. Solutions of the triangular systems are then not large.
HostTensor well_conditioned(Rng& rng, const Shape& shape) {
  const std::int64_t n = shape.back();
  HostTensor a = normals(rng, shape, 0.5 / std::sqrt(static_cast<double>(n)));
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) % (n * n);
    if (at / n == at % n) a.values[i] = 1.5 + rng.uniform();
  }
  return a;
}

std::vector<Operation> triangle_operations() {
  return {
      {.name = "triangle",
       .page = "triangle",
       .formula = "y_ij = alpha x_ij for j <= i + diagonal (upper: j >= i + diagonal), otherwise 0",
       .inputs = {{"x", "[..., n, n]"}},
       .attributes = {{"upper", "0", "1: keep the upper triangle"},
                      {"diagonal", "0", "shift of the boundary to the right"},
                      {"alpha", "1", "factor of the kept entries"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         return {
             {"y", triangle(c.in("x"), c.flag("upper"), c.integer("diagonal"), c.number("alpha"))}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const char* upper : {"0", "1"}) {
               for (const char* diagonal : {"-1", "0", "2"}) {
                 for (const Shape& s : {Shape{1, 1}, Shape{5, 5}, Shape{2, 19, 19}}) {
                   cases.push_back({{{"x", normals(rng, s)}},
                                    {{"upper", upper}, {"diagonal", diagonal}, {"alpha", "-2"}}});
                 }
               }
             }
             return cases;
           }},
      {.name = "solve_triangular",
       .page = "triangle",
       .formula = "op(a) y = b, where a is triangular",
       .inputs = {{"a", "[..., n, n]"}, {"b", "[..., n, m]"}},
       .attributes = {{"upper", "0", "1: use a's upper triangle"},
                      {"transpose", "0", "1: op(a) is a's transpose"},
                      {"unit", "0", "1: treat the diagonal as ones"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         return {{"y", solve_triangular(c.in("a"), c.in("b"),
                                        {.upper = c.flag("upper"),
                                         .transpose = c.flag("transpose"),
                                         .unit = c.flag("unit")})}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const char* upper : {"0", "1"}) {
               for (const char* transpose : {"0", "1"}) {
                 for (const char* unit : {"0", "1"}) {
                   for (const Shape& s : {Shape{1, 1}, Shape{7, 7}, Shape{2, 33, 33}}) {
                     cases.push_back(
                         {{{"a", well_conditioned(rng, s)}, {"b", normals(rng, s.with_back(5))}},
                          {{"upper", upper}, {"transpose", transpose}, {"unit", unit}}});
                   }
                 }
               }
             }
             return cases;
           }},
  };
}

}  // namespace

extern const Family triangle_family;
constinit const Family triangle_family{triangle_operations};

}  // namespace longhand::catalog
