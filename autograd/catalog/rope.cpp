#include "autograd/rope.h"

#include <cmath>

#include "autograd/catalog/catalog.h"
#include "core/contract/heads.h"
#include "core/contract/rope.h"

namespace longhand::catalog {
namespace {

struct Layout {
  std::int64_t tokens, columns, first_column, heads, width, dims;
};

Case turned(Rng& rng, const Layout& l, bool interleaved) {
  HostTensor frequencies{{l.dims / 2}, {}};
  for (std::int64_t p = 0; p < l.dims / 2; ++p) {
    frequencies.values.push_back(
        std::pow(10000.0, -2.0 * static_cast<double>(p) / static_cast<double>(l.dims)));
  }
  return {{{"x", normals(rng, {l.tokens, l.columns})},
           {"positions", integers(rng, {l.tokens}, 0, 40)},
           {"frequencies", frequencies}},
          {{"first_column", std::to_string(l.first_column)},
           {"heads", std::to_string(l.heads)},
           {"width", std::to_string(l.width)},
           {"interleaved", interleaved ? "1" : "0"}}};
}

Operation rope_operation() {
  return {.name = "rope",
          .page = "rope",
          .formula = "(u, v) -> (u cos t - v sin t, u sin t + v cos t), t = position frequency_p",
          .inputs = {{"x", "[tokens, columns]"},
                     {"positions", "[tokens]", Role::index, false},
                     {"frequencies", "[dims / 2]", Role::master, false}},
          .attributes = {{"first_column", "0", "first column of the first head"},
                         {"heads", "1", "number of heads to rotate"},
                         {"width", "0", "number of columns of a head; 0: all of x"},
                         {"interleaved", "0", "1: pairs (2p, 2p+1); 0: pairs (p, p + dims/2)"}},
          .outputs = {"y"},
          .run = [](const Call& c) -> std::vector<Output> {
            const Tensor positions = c.in("positions").value();
            const std::vector<double> frequencies = c.in("frequencies").value().to_doubles();
            std::int64_t longest = 1;
            for (const std::int32_t p : positions.to_ints()) {
              longest = std::max<std::int64_t>(longest, p + std::int64_t{1});
            }
            const std::int64_t width = c.integer("width");
            const Tensor table =
                rope_table(c.backend(), master_type(c.activations()), longest, frequencies);
            return {{"y", rope(c.in("x"), positions, table,
                               {.first_column = c.integer("first_column"),
                                .heads = c.integer("heads"),
                                .width = width ? width : c.in("x").value().columns(),
                                .dims = static_cast<std::int64_t>(2 * frequencies.size()),
                                .interleaved = c.flag("interleaved")})}};
          },
          .cases =
              [](Rng& rng) {
                std::vector<Case> cases;
                const Layout layouts[] = {{1, 2, 0, 1, 2, 2},     {5, 16, 0, 1, 16, 16},
                                          {7, 48, 0, 2, 16, 16},  {6, 51, 3, 3, 16, 4},
                                          {3, 140, 4, 2, 64, 64}, {4, 66, 0, 1, 66, 34}};
                for (const Layout& l : layouts) {
                  for (const bool interleaved : {false, true}) {
                    cases.push_back(turned(rng, l, interleaved));
                  }
                }
                return cases;
              }};
}

Operation rotate_operation() {
  return {
      .name = "rotate",
      .page = "rope",
      .formula = "(u, v) -> (u cos t - v sin t, u sin t + v cos t), t = angle of its pair",
      .inputs = {{"x", "[tokens, columns]"},
                 {"angles", "[tokens, groups * width / 2]", Role::master}},
      .attributes = {{"first_column", "0", "first column of the first head"},
                     {"heads", "1",
                      "number of heads to rotate; head k uses the angles of group k mod groups"},
                     {"width", "0", "number of columns of a head; 0: all of x"}},
      .outputs = {"y"},
      .run = [](const Call& c) -> std::vector<Output> {
        const std::int64_t width = c.integer("width");
        return {{"y", rotate(c.in("x"), c.in("angles"),
                             {.first_column = c.integer("first_column"),
                              .heads = c.integer("heads"),
                              .width = width ? width : c.in("x").value().columns()})}};
      },
      .cases =
          [](Rng& rng) {
            struct Heads {
              std::int64_t tokens, columns, first_column, heads, groups, width;
            };
            std::vector<Case> cases;
            for (const Heads& l :
                 {Heads{1, 2, 0, 1, 1, 2}, Heads{5, 16, 0, 1, 1, 16}, Heads{7, 67, 3, 4, 2, 16},
                  Heads{6, 51, 0, 3, 1, 10}, Heads{3, 140, 4, 2, 2, 66}}) {
              HostTensor angles = normals(rng, {l.tokens, l.groups * l.width / 2});
              for (double& t : angles.values) t *= 20;
              cases.push_back({{{"x", normals(rng, {l.tokens, l.columns})}, {"angles", angles}},
                               {{"first_column", std::to_string(l.first_column)},
                                {"heads", std::to_string(l.heads)},
                                {"width", std::to_string(l.width)}}});
            }
            return cases;
          }};
}

std::vector<Operation> rope_operations() { return {rope_operation(), rotate_operation()}; }

}  // namespace

extern const Family rope_family;
constinit const Family rope_family{rope_operations};

}  // namespace longhand::catalog
