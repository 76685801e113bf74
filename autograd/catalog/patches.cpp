#include "autograd/patches.h"

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

std::vector<Operation> patches_operations() {
  const auto pool = [](const char* name, const char* formula, Var (*of)(const Var&, std::int64_t)) {
    return Operation{.name = name,
                     .page = "patches",
                     .formula = formula,
                     .inputs = {{"x", "[images, height, width, channels]"}},
                     .attributes = {{"size", "2", "side of a square in pixels"}},
                     .outputs = {"y"},
                     .run = [of](const Call& c) -> std::vector<Output> {
                       return {{"y", of(c.in("x"), c.integer("size"))}};
                     },
                     .cases =
                         [](Rng& rng) {
                           return std::vector<Case>{
                               {{{"x", normals(rng, {2, 4, 6, 3})}}, {{"size", "2"}}},
                               {{{"x", normals(rng, {1, 7, 5, 16})}}, {{"size", "3"}}},
                               {{{"x", normals(rng, {3, 2, 2, 1})}}, {{"size", "1"}}}};
                         }};
  };
  return {{.name = "patches",
           .page = "patches",
           .formula = "y = the pixels of each patch, side by side",
           .inputs = {{"x", "[images, height, width, channels]"}},
           .attributes = {{"size", "3", "side of a patch in pixels"},
                          {"stride", "1", "distance of neighbouring patches in pixels"},
                          {"padding", "0", "width of the border of zeros, less than size"}},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             return {{"y", patches(c.in("x"), {.size = c.integer("size"),
                                               .stride = c.integer("stride"),
                                               .padding = c.integer("padding")})}};
           },
           .cases =
               [](Rng& rng) {
                 return std::vector<Case>{
                     {{{"x", normals(rng, {2, 4, 5, 3})}}, {{"padding", "1"}}},
                     {{{"x", normals(rng, {1, 6, 6, 2})}}, {}},
                     {{{"x", normals(rng, {2, 5, 7, 1})}},
                      {{"size", "3"}, {"stride", "2"}, {"padding", "2"}}},
                     {{{"x", normals(rng, {1, 1, 1, 4})}},
                      {{"size", "5"}, {"stride", "3"}, {"padding", "4"}}},
                     {{{"x", normals(rng, {1, 6, 4, 16})}}, {{"size", "2"}, {"stride", "2"}}},
                     {{{"x", normals(rng, {3, 3, 3, 2})}}, {{"size", "1"}, {"stride", "2"}}}};
               }},
          pool("max_pool", "y = maximum over squares of size x size pixels", max_pool),
          pool("mean_pool", "y = mean over squares of size x size pixels", mean_pool)};
}

}  // namespace

extern const Family patches_family;
constinit const Family patches_family{patches_operations};

}  // namespace longhand::catalog
