#include "autograd/dropout.h"

#include <array>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {

namespace {

std::vector<Operation> dropout_operations() {
  return {
      {.name = "dropout",
       .page = "dropout",
       .formula = "y = 0 with probability rate, otherwise x / (1 - rate)",
       .inputs = {{"x", "[...]"}},
       .attributes = {{"rate", "0.1", "probability that an entry is dropped"},
                      {"seed", "1", "seed of the random numbers"},
                      {"step", "1", "training step; each step draws different numbers"},
                      {"index", "0", "index of this dropout within a step"}},
       .outputs = {"y"},
       .run = [](const Call& c) -> std::vector<Output> {
         const std::array step{static_cast<std::int32_t>(c.integer("step"))};
         return {{"y", longhand::dropout(c.in("x"),
                                         {.rate = c.number("rate"),
                                          .seed = static_cast<std::uint64_t>(c.integer("seed")),
                                          .index = static_cast<std::uint32_t>(c.integer("index")),
                                          .step = Tensor::from(c.backend(), {1}, step)})}};
       },
       .cases =
           [](Rng& rng) {
             std::vector<Case> cases;
             for (const Shape& s : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{0, 4}, Shape{3, 257}}) {
               for (const char* rate : {"0", "0.3", "0.9"}) {
                 cases.push_back({{{"x", normals(rng, s)}},
                                  {{"rate", rate}, {"seed", "12345678901234"}, {"step", "3"}}});
               }
             }
             cases.push_back({{{"x", normals(rng, {64})}}, {{"rate", "0.5"}, {"index", "65537"}}});
             return cases;
           },
       .large = [](Rng& rng) -> std::vector<Case> {
         return {{{{"x", normals(rng, {5, 8191})}}, {{"rate", "0.25"}}}};
       }},
  };
}

}  // namespace

extern const Family dropout_family;
constinit const Family dropout_family{dropout_operations};

}  // namespace longhand::catalog
