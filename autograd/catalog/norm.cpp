#include "autograd/norm.h"

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

const std::vector<Shape> norm_shapes{{1, 3}, {3, 5}, {2, 64}, {7, 33}, {70, 16}, {2, 3, 8}, {0, 4}};

std::vector<Operation> norm_operations() {
  return {
      {.name = "layer_norm",
       .page = "norm",
       .formula = "y_ij = (x_ij - mean_i) rstd_i gain_j + bias_j",
       .inputs = {{"x", "[rows, n]"},
                  {"gain", "[n]", Role::master},
                  {"bias", "[n]", Role::master, true, true}},
       .attributes = {{"epsilon", "1e-5", "epsilon, added to the variance"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         return {{"y", layer_norm(c.in("x"), c.in("gain"), c.maybe("bias"), c.number("epsilon"))}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const Shape& s : norm_shapes) {
               const Shape n{s.back()};
               cases.push_back({{{"x", normals(rng, s, 2, 1)},
                                 {"gain", normals(rng, n, 0.5, 1)},
                                 {"bias", normals(rng, n)}}});
             }
             // Cases without a bias. In the second, the mean is much larger than the standard
             // deviation. In the third, epsilon affects the result.
             cases.push_back({{{"x", normals(rng, {3, 24})}, {"gain", normals(rng, {24})}}});
             cases.push_back({{{"x", normals(rng, {3, 24}, 1, 30)}, {"gain", normals(rng, {24})}},
                              {{"epsilon", "0.1"}}});
             cases.push_back({{{"x", normals(rng, {9, 24}, 0.5)}, {"gain", normals(rng, {24})}},
                              {{"epsilon", "0.1"}}});
             return cases;
           }},
      {.name = "rms_norm",
       .page = "norm",
       .formula = "y_ij = x_ij rstd_i (offset + gain_j)",
       .inputs = {{"x", "[rows, n]"}, {"gain", "[n]", Role::master}},
       .attributes = {{"offset", "0", "1 if the gain is stored as the difference from one"},
                      {"epsilon", "1e-6", "epsilon, added to the mean square"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         return {{"y", rms_norm(c.in("x"), c.in("gain"), c.number("offset"), c.number("epsilon"))}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const char* offset : {"0", "1"}) {
               for (const Shape& s : norm_shapes) {
                 cases.push_back(
                     {{{"x", normals(rng, s, 2)}, {"gain", normals(rng, {s.back()}, 0.5, 1)}},
                      {{"offset", offset}}});
               }
             }
             cases.push_back({{{"x", normals(rng, {9, 24}, 0.5)}, {"gain", normals(rng, {24})}},
                              {{"epsilon", "0.1"}}});
             return cases;
           }},
  };
}

}  // namespace

extern const Family norm_family;
constinit const Family norm_family{norm_operations};

}  // namespace longhand::catalog
