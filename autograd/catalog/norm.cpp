#include "autograd/norm.h"

#include "autograd/catalog/catalog.h"
#include "core/error.h"

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
      {.name = "batch_norm",
       .page = "norm",
       .formula = "y_ij = (x_ij - mean_j) rstd_j gain_j + bias_j, rstd_j = 1 / sqrt(variance_j + "
                  "epsilon)",
       .inputs = {{"x", "[rows, n]"},
                  {"gain", "[n]", Role::master},
                  {"bias", "[n]", Role::master},
                  {"mean", "[n]; default: the mean of x's columns", Role::master, true, true},
                  {"variance", "[n]; default: the variance of x's columns", Role::master, true,
                   true}},
       .attributes = {{"epsilon", "1e-5", "epsilon, added to the variance"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         const Var mean = c.maybe("mean"), variance = c.maybe("variance");
         LONGHAND_CHECK(
             !mean == !variance,
             "batch_norm: expected both `mean` and `variance`, or neither, got one of them");
         const ColumnMoments moments =
             mean ? ColumnMoments{mean, variance} : column_moments(c.in("x"));
         return {{"y",
                  batch_norm(c.in("x"), moments, c.in("gain"), c.in("bias"), c.number("epsilon"))}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const Shape& s : {Shape{3, 5}, Shape{64, 2}, Shape{33, 7}, Shape{16, 70},
                                    Shape{2, 3, 8}, Shape{0, 4}}) {
               const Shape n{s.back()};
               for (const bool given : {false, true}) {
                 Case c{{{"x", normals(rng, s, 2, 1)},
                         {"gain", normals(rng, n, 0.5, 1)},
                         {"bias", normals(rng, n)}}};
                 if (given) {
                   c.inputs["mean"] = normals(rng, n);
                   c.inputs["variance"] = uniforms(rng, n, 0.5, 2);
                 }
                 cases.push_back(std::move(c));
               }
             }
             // In this case, epsilon is large enough to affect the result.
             cases.push_back({{{"x", normals(rng, {24, 9}, 0.5)},
                               {"gain", normals(rng, {9})},
                               {"bias", normals(rng, {9})}},
                              {{"epsilon", "0.1"}}});
             return cases;
           }},
  };
}

}  // namespace

extern const Family norm_family;
constinit const Family norm_family{norm_operations};

}  // namespace longhand::catalog
