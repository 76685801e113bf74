#include "autograd/gru.h"

#include <cmath>

#include "autograd/catalog/catalog.h"

namespace longhand::catalog {
namespace {

Case gru_case(Rng& rng, const std::vector<double>& lengths, std::int64_t n) {
  double tokens = 0;
  for (const double length : lengths) tokens += length;
  return {{{"x", normals(rng, {static_cast<std::int64_t>(tokens), 3 * n})},
           {"lengths", {{std::ssize(lengths)}, lengths}},
           {"u", normals(rng, {3 * n, n}, 0.8 / std::sqrt(static_cast<double>(n)))},
           {"bias", normals(rng, {n})}}};
}

std::vector<Operation> gru_operations() {
  return {{.name = "gru",
           .page = "gru",
           .formula = "r = s(x_r + U_r h_(t-1)), z = s(x_z + U_z h_(t-1)), n = tanh(x_n + r (U_n "
                      "h_(t-1) + bias)), y_t = h_t = (1 - z) n + z h_(t-1), s the sigmoid",
           .inputs = {{"x", "[tokens, 3 n]: three parts, [r | z | n]"},
                      {"lengths", "[sequences]: number of tokens of each", Role::index, false},
                      {"u", "[3 n, n]", Role::master},
                      {"bias", "[n]", Role::master}},
           .attributes = {},
           .outputs = {"y"},
           .run = [](const Call& c) -> std::vector<Output> {
             const Segments segments(c.backend(), c.in("lengths").value().to_ints());
             return {{"y", gru(c.in("x"), segments, c.in("u"), c.in("bias"))}};
           },
           .cases =
               [](Rng& rng) {
                 return std::vector<Case>{gru_case(rng, {1}, 1), gru_case(rng, {5, 0, 1, 7}, 3),
                                          gru_case(rng, {2, 6, 6}, 4), gru_case(rng, {0, 2}, 2)};
               },
           .large =
               [](Rng& rng) {
                 return std::vector<Case>{gru_case(rng, {20, 24, 40}, 16),
                                          gru_case(rng, {9, 1, 12, 30, 3, 20}, 5),
                                          // dbias has 128 entries: in their mean, the
                                          // rounding errors average out
                                          gru_case(rng, {12, 20}, 128)};
               }}};
}

}  // namespace

extern const Family gru_family;
constinit const Family gru_family{gru_operations};

}  // namespace longhand::catalog
